import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { derivedImage } from "../../test/tasks/swe/derived-image.ts";
import BOLTONS from "./boltons.sh" with { type: "text" };

/**
 * Makes an image with a real open-source Python repository and a row for it, to see the swe kind at work:
 *
 *     source .tools/env
 *     bun scripts/examples/swe-image.ts /var/tmp/boltons
 *     dist/rolloutd run /var/tmp/boltons/rows.jsonl --golden --image-dirs /var/tmp/boltons
 *
 * Uses the network: the released source archives of boltons (BSD) come from PyPI. They have no git history, so
 * one is rebuilt with a commit for each release.
 */
const VERSIONS = ["23.1.0", "23.1.1", "24.0.0", "24.1.0", "25.0.0"];

const [target] = process.argv.slice(2);
if (!target) {
  console.error("usage: bun scripts/examples/swe-image.ts NEW_FOLDER");
  process.exit(2);
}
const folder = resolve(target);
mkdirSync(folder);
const downloads = mkdtempSync(join(tmpdir(), "boltons-"));
try {
  console.error(`swe-image: fetching ${VERSIONS.length} releases of boltons from PyPI`);
  for (const version of VERSIONS) {
    const pip = ["python3", "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "boltons"];
    const { exitCode, stderr } = Bun.spawnSync([...pip, "-d", downloads, `boltons==${version}`]);
    if (exitCode !== 0) throw new Error(`pip could not fetch boltons ${version}: ${stderr}`);
  }
  const { image, made: row } = await derivedImage(folder, async (sandbox) => {
    for (const name of readdirSync(downloads).filter((file) => file.endsWith(".tar.gz"))) {
      await sandbox.writeFile(`/tmp/sdists/${name}`, readFileSync(join(downloads, name)));
    }
    console.error(
      "swe-image: rebuilding a history, and running the tests before and after the fix",
    );
    const argv = ["bash", "-c", BOLTONS, "boltons", "/tmp/testbed"];
    const made = await sandbox.exec(argv, { timeoutMs: 300_000, maxOutputBytes: 10_000_000 });
    if (made.exitCode !== 0) throw new Error(`the repository was not made: ${made.stderr}`);
    return JSON.parse(made.stdout);
  });
  const rows = join(folder, "rows.jsonl");
  await Bun.write(rows, `${JSON.stringify({ ...row, image })}\n`);
  const counts = [row.FAIL_TO_PASS.length, row.PASS_TO_PASS.length];
  console.error(`swe-image: ${image}: ${counts[0]} tests to be mended, ${counts[1]} to be kept`);
  console.log(rows);
} finally {
  rmSync(downloads, { recursive: true, force: true });
}
process.exit(0);

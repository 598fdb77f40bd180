import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { parseSweRow } from "../../src/tasks/swe/row.ts";
import { LOG_FORMATS } from "../../src/verifiers/tests/formats.ts";
import { statusesOf } from "../../src/verifiers/tests/status.ts";
import { LIMITS, required, setup } from "../../test/sandbox/setup.ts";
import HISTORY from "./history.sh" with { type: "text" };
import type { RowSource } from "./rows.ts";

const TREE = { maxBytes: 400_000_000, maxEntries: 40_000 };
const ROOM = { ...LIMITS, tmpfsBytes: 1_500_000_000, memoryBytes: 4_000_000_000 };
const LONG = { timeoutMs: 900_000, maxOutputBytes: 16 << 20 };

/** Makes `folder/rootfs`, the base image with the repository in `/testbed` and what it needs, and says the row. */
export async function makeImage(source: RowSource, folder: string) {
  const image = join(folder, "rootfs");
  copyBase(image);
  install(source, image);
  const downloads = mkdtempSync(join(tmpdir(), "swe-images-"));
  try {
    for (const version of [source.before, source.after]) {
      const pip = [...PIP, "download", "--no-deps", "--no-binary", source.package];
      run([...pip, "-d", downloads, `${source.package}==${version}`]);
    }
    await using bundle = await setup("bubblewrap", {}, image);
    const sandbox = await bundle.open({ limits: ROOM });
    for (const name of readdirSync(downloads)) {
      await sandbox.writeFile(`/tmp/sdists/${name}`, readFileSync(join(downloads, name)));
    }
    for (const [path, text] of Object.entries(source.extra ?? {})) {
      await sandbox.writeFile(`/tmp/extra/${path}`, text, 0o755);
    }
    const row = await rowOf(source, image, sandbox);
    await sandbox.saveTree("/testbed", join(folder, "testbed"), TREE);
    renameSync(join(folder, "testbed"), join(image, "testbed"));
    return row;
  } finally {
    rmSync(downloads, { recursive: true, force: true });
  }
}

const PIP = ["python3", "-m", "pip", "--disable-pip-version-check", "-q"];

/** What the repository needs, as wheels for the image's Python, and a path entry that leads to the repository. */
function install({ package: name, before, needs, sources }: RowSource, image: string): void {
  const target = join(image, "usr/local/lib/python3.11/dist-packages");
  mkdirSync(target, { recursive: true });
  const wheels = ["--only-binary", ":all:", "--implementation", "cp", "--python-version", "3.11"];
  const platforms = [
    "manylinux_2_28_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
    "any",
  ];
  const chosen = [...wheels, ...platforms.flatMap((platform) => ["--platform", platform])];
  run([
    ...PIP,
    "install",
    ...chosen,
    "--no-compile",
    "--target",
    target,
    `${name}==${before}`,
    ...needs,
  ]);
  for (const own of sources)
    rmSync(join(target, own.split("/").at(-1) ?? own), { recursive: true, force: true });
  programs(join(target, "bin"), join(image, "usr/local/bin"));
  const folders = new Set(sources.map((own) => join("/testbed", own, "..")));
  writeFileSync(join(target, "testbed.pth"), [...folders, ""].join("\n"));
}

/** By links where it can be: what is added lies in files of its own. */
function copyBase(image: string): void {
  const base = required("ROLLOUTD_IMAGE");
  if (Bun.spawnSync(["cp", "-al", base, image], { stderr: "ignore" }).exitCode === 0) return;
  rmSync(image, { recursive: true, force: true });
  run(["cp", "-a", base, image]);
}

/** Of the wheels, for the image's Python instead of this node's. */
function programs(from: string, to: string): void {
  if (!existsSync(from)) return;
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) {
    const text = readFileSync(join(from, name), "utf8");
    writeFileSync(join(to, name), text.replace(/^#!.*/, "#!/usr/bin/python3"), { mode: 0o755 });
  }
}

function run(argv: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(argv, { stdout: "ignore", stderr: "pipe" });
  if (exitCode !== 0)
    throw new Error(`${argv.slice(0, 6).join(" ")} …: ${stderr.toString().slice(-600)}`);
}

/** Two commits of the two releases, and what their tests say before and after the change. */
async function rowOf(source: RowSource, image: string, sandbox: Sandbox) {
  const { package: name, before, after, sources, tests } = source;
  const git = async (script: string, ...given: string[]) => {
    const argv = ["bash", "-c", script, "row", ...given];
    const { exitCode, stdout, stderr } = await sandbox.exec(argv, { ...LONG, cwd: "/" });
    if (exitCode !== 0) throw new Error(stderr.slice(-600));
    return stdout;
  };
  const base = (await git(HISTORY, before, after)).trim();
  const diff = "cd /testbed && git diff --no-renames --full-index --diff-filter=AM v1 v2 --";
  const patch = await git(`${diff} "$@"`, ...sources, ...tests.map((path) => `:(exclude)${path}`));
  const testPatch = await git(`${diff} "$@"`, ...tests);
  const draft = {
    data_source: "swebench",
    instance_id: source.id,
    repo: source.repo,
    version: before.split(".").slice(0, 2).join("."),
    base_commit: base,
    problem_statement: `Bring ${name} ${before} to what release ${after} does.`,
    patch,
    test_patch: testPatch,
    ...(source.test_cmd && { test_cmd: source.test_cmd }),
    ...(source.log_parser && { log_parser: source.log_parser }),
    image,
  };
  const { tests: plan } = parseSweRow({ ...draft, FAIL_TO_PASS: ["x"] });
  if (!("targets" in plan)) throw new Error("the row has a script of its own");
  const passing = async (patches: string[]) => {
    for (const text of patches) {
      await sandbox.writeFile("/tmp/next.patch", text);
      await git("cd /testbed && git apply --whitespace=nowarn /tmp/next.patch");
    }
    const command = `exec 2>&1; cd /testbed; ${plan.command} ${plan.targets.join(" ")}`;
    const env = { LANG: "C.UTF-8", LC_ALL: "C.UTF-8", PYTHONIOENCODING: "utf8", NO_COLOR: "1" };
    const { stdout } = await sandbox.exec(["bash", "-c", command], { ...LONG, env });
    const statuses = statusesOf(LOG_FORMATS[plan.format].parse(stdout));
    if (statuses.size === 0) throw new Error(`no test ran: ${stdout.slice(-800)}`);
    return new Set([...statuses].flatMap(([name, status]) => (status === "passed" ? name : [])));
  };
  const old = await passing([testPatch]);
  const once = await passing([patch]);
  // Names with the time of day in them are different ones each time.
  const mended = (await passing([])).intersection(once);
  await git("cd /testbed && git reset -q --hard && git clean -qfdx && git tag -d v1 v2 >/dev/null");
  const row = {
    ...draft,
    FAIL_TO_PASS: [...mended].filter((name) => !old.has(name)),
    PASS_TO_PASS: [...mended].filter((name) => old.has(name)),
  };
  if (row.FAIL_TO_PASS.length === 0) throw new Error("no test tells the releases apart");
  return row;
}

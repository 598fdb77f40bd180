import { expect, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../../src/errors.ts";
import { checkImage, explainOwner } from "../../src/sandbox/image.ts";
import { tempDir } from "../support/temp-dir.ts";

const MODULE = Bun.fileURLToPath(import.meta.resolve("../../src/sandbox/image.ts"));
const NOBODY = 65534;

function image(folder: string): string {
  mkdirSync(join(folder, "usr/bin"), { recursive: true });
  for (const name of ["bash", "sh"])
    writeFileSync(join(folder, "usr/bin", name), "", { mode: 0o755 });
  symlinkSync("usr/bin", join(folder, "bin"));
  return folder;
}

/** As a user to whom modes mean something. */
async function checkedByNobody(path: string): Promise<string> {
  const program = `import { checkImage } from ${JSON.stringify(MODULE)};
    process.setgid?.(${NOBODY}); process.setuid?.(${NOBODY});
    console.log(await checkImage(${JSON.stringify(path)}).then(() => "ok", (error) => error.code + ": " + error.message + "; " + error.mend));`;
  const child = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe", stderr: "pipe" });
  return (await child.stdout.text()).trim() || (await child.stderr.text());
}

test("an image folder that this user may not use says so, and what to do", async () => {
  using dir = tempDir();
  chmodSync(dir.path, 0o755);
  const path = image(dir.file("image"));
  await checkImage(path);
  const isRoot = process.getuid?.() === 0;
  const check = isRoot ? checkedByNobody : async () => "ok";
  expect(await check(path)).toBe("ok");
  for (const name of ["", "usr", "usr/bin", "usr/bin/bash"]) {
    chmodSync(join(path, name), 0o700);
    if (isRoot) {
      const said = await check(path);
      expect(said).toStartWith(
        `image_invalid: the image ${path} can't be used by this user (uid ${NOBODY})`,
      );
      expect(said).toContain("belongs to somebody else");
      expect(said).toContain("rolloutd images add");
    }
    chmodSync(join(path, name), 0o755);
  }
});

test("what an image of another owner was found to lack is told with that owner, and with the way to a copy", async () => {
  using dir = tempDir();
  const path = image(dir.file("image"));
  const error = new ServiceError("image_invalid", "the repository can't be prepared", {
    mend: "x",
  });
  expect(await explainOwner(error, path)).toBe(error);
  if (process.getuid?.() !== 0) return;
  chownSync(path, 12345, 12345);
  expect(await explainOwner(error, path)).toMatchObject({
    code: "image_invalid",
    message: `the repository can't be prepared; the files of ${path} belong to another user (uid 12345), so that nothing in a sandbox can change them`,
    mend: expect.stringContaining(`rolloutd images add ${path}`),
  });
  const other = new ServiceError("sandbox_died", "no");
  expect(await explainOwner(other, path)).toBe(other);
});

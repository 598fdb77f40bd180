import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { removeTree } from "../../src/lib/remove-tree.ts";
import { tempDir } from "../support/temp-dir.ts";

const MODULE = new URL("../../src/lib/remove-tree.ts", import.meta.url).pathname;
const NOBODY = 65534;

/**
 * Removes `dir`/tree, as often at once as asked for, in a process that is not root's: to root no folder is
 * closed. Gives what it wrote and its exit code.
 */
async function removeAsUser(dir: string, times = 1) {
  const isRoot = process.getuid?.() === 0;
  if (isRoot) Bun.spawnSync(["chown", "-R", "-h", `${NOBODY}:${NOBODY}`, dir]);
  const script = `const { removeTree } = await import(${JSON.stringify(MODULE)});
    if (${isRoot}) process.setuid(${NOBODY});
    const tree = ${JSON.stringify(`${dir}/tree`)};
    await Promise.all(Array.from({ length: ${times} }, () => removeTree(tree)));`;
  const child = Bun.spawn([process.execPath, "-e", script], { stderr: "pipe" });
  return [await new Response(child.stderr).text(), await child.exited];
}

describe("removing a tree", () => {
  test("takes files and folders of any depth", async () => {
    using dir = tempDir();
    mkdirSync(dir.file("tree/a/b/c"), { recursive: true });
    writeFileSync(dir.file("tree/a/b/file"), "");
    await removeTree(dir.file("tree"));
    expect(readdirSync(dir.path)).toEqual([]);
  });

  test("takes folders that nobody may enter or write to", async () => {
    using dir = tempDir();
    mkdirSync(dir.file("tree/closed/inner/folder"), { recursive: true });
    writeFileSync(dir.file("tree/closed/inner/file"), "");
    chmodSync(dir.file("tree/closed/inner"), 0o000);
    chmodSync(dir.file("tree/closed"), 0o500);
    chmodSync(dir.file("tree"), 0o000);
    expect(await removeAsUser(dir.path)).toEqual(["", 0]);
    expect(readdirSync(dir.path)).toEqual([]);
  });

  test("takes thousands of folders within each other, of any bytes, soon", async () => {
    using dir = tempDir();
    const script = `import os, sys
os.chdir(sys.argv[1])
for name in [b"tree", *[b"\\xff\\xfe"] * 20, *[b"d" * 255] * 40, *[b"d"] * 4000]:
    os.mkdir(name)
    os.chdir(name)
    if len(name) == 2: os.mkdir(b"closed\\xff", 0o500), os.close(os.open(b"file", os.O_CREAT))
os.mkdir("closed", 0)`;
    expect(Bun.spawnSync(["python3", "-c", script, dir.path]).exitCode).toBe(0);
    const startMs = performance.now();
    expect(await removeAsUser(dir.path)).toEqual(["", 0]);
    expect(readdirSync(dir.path)).toEqual([]);
    expect(performance.now() - startMs).toBeLessThan(10_000);
  });

  test("removes links and leaves alone what they point to", async () => {
    using dir = tempDir();
    mkdirSync(dir.file("outside/inner"), { recursive: true });
    writeFileSync(dir.file("outside/inner/kept"), "kept");
    mkdirSync(dir.file("tree/closed"), { recursive: true });
    symlinkSync(dir.file("outside"), dir.file("tree/closed/link"));
    symlinkSync("/nonexistent", dir.file("tree/dangling"));
    chmodSync(dir.file("tree/closed"), 0o500);
    expect(await removeAsUser(dir.path)).toEqual(["", 0]);
    expect(readdirSync(dir.path)).toEqual(["outside"]);
    expect(readFileSync(dir.file("outside/inner/kept"), "utf8")).toBe("kept");
  });

  test("can be done by two at once", async () => {
    using dir = tempDir();
    for (let index = 0; index < 100; index++) {
      mkdirSync(dir.file(`tree/${index}/inner/innermost`), { recursive: true });
      chmodSync(dir.file(`tree/${index}/inner`), 0o500);
    }
    expect(await removeAsUser(dir.path, 2)).toEqual(["", 0]);
    expect(existsSync(dir.file("tree"))).toBe(false);
  });

  test("of what is not there is no failure", async () => {
    using dir = tempDir();
    await removeTree(dir.file("nothing"));
  });
});

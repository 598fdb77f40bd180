import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { removeTree } from "../../src/lib/remove-tree.ts";
import { tempDir } from "../support/temp-dir.ts";

describe("removing a tree", () => {
  test("takes files and folders of any depth", async () => {
    using dir = tempDir();
    mkdirSync(dir.file("tree/a/b/c"), { recursive: true });
    writeFileSync(dir.file("tree/a/b/file"), "");
    await removeTree(dir.file("tree"));
    expect([existsSync(dir.file("tree")), existsSync(dir.path)]).toEqual([false, true]);
  });

  test("takes folders that nobody may read or write", async () => {
    using dir = tempDir();
    mkdirSync(dir.file("tree/closed/inner/file"), { recursive: true });
    chmodSync(dir.file("tree/closed/inner"), 0o000);
    chmodSync(dir.file("tree/closed"), 0o500);
    chmodSync(dir.file("tree"), 0o000);
    await removeTree(dir.file("tree"));
    expect(existsSync(dir.file("tree"))).toBe(false);
  });

  test("removes links and leaves alone what they point to", async () => {
    using dir = tempDir();
    mkdirSync(dir.file("outside"));
    writeFileSync(dir.file("outside/kept"), "kept");
    mkdirSync(dir.file("tree/closed"), { recursive: true });
    symlinkSync(dir.file("outside"), dir.file("tree/closed/link"));
    symlinkSync("/nonexistent", dir.file("tree/dangling"));
    chmodSync(dir.file("tree/closed"), 0o500);
    await removeTree(dir.file("tree"));
    expect(existsSync(dir.file("tree"))).toBe(false);
    expect(readFileSync(dir.file("outside/kept"), "utf8")).toBe("kept");
  });

  test("of what is not there is no failure", async () => {
    using dir = tempDir();
    await removeTree(dir.file("nothing"));
  });

  test("can be done by two at once", async () => {
    using dir = tempDir();
    for (let index = 0; index < 200; index++) {
      mkdirSync(dir.file(`tree/${index}/inner`), { recursive: true });
    }
    await Promise.all([removeTree(dir.file("tree")), removeTree(dir.file("tree"))]);
    expect(existsSync(dir.file("tree"))).toBe(false);
  });
});

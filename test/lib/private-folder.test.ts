import { expect, test } from "bun:test";
import { chmodSync, chownSync, lchownSync, mkdirSync, statSync, symlinkSync } from "node:fs";
import { makePrivateFolder } from "../../src/lib/private-folder.ts";
import { tempDir } from "../support/temp-dir.ts";

const NOBODY = 65534;

test("a folder that is not there is made for us alone", () => {
  using dir = tempDir();
  expect(makePrivateFolder(dir.file("a/b"))).toBeNull();
  expect(statSync(dir.file("a/b")).mode & 0o777).toBe(0o700);
  expect(makePrivateFolder(dir.file("a/b"))).toBeNull();
});

test("a link in its place is refused, also to a folder of ours", () => {
  using dir = tempDir();
  mkdirSync(dir.file("precious"), { mode: 0o700 });
  for (const target of [dir.file("precious"), "precious"]) {
    symlinkSync(target, dir.file("link"));
    expect(makePrivateFolder(dir.file("link"))?.why).toBe("is a link");
    expect(makePrivateFolder(`${dir.file("link")}/`)?.why).toBe("is a link");
    Bun.spawnSync(["rm", dir.file("link")]);
  }
  symlinkSync(dir.file("nowhere"), dir.file("dangling"));
  expect(makePrivateFolder(dir.file("dangling"))).not.toBeNull();
});

test("a folder that others can write, or that is theirs, is refused", () => {
  using dir = tempDir();
  mkdirSync(dir.file("open"));
  chmodSync(dir.file("open"), 0o777);
  expect(makePrivateFolder(dir.file("open"))?.why).toContain("can be written");
  expect(makePrivateFolder("/proc/self")).not.toBeNull();
});

// Only root can give something away.
if (process.getuid?.() === 0) {
  test("another user's link or folder on the way is refused, where anybody can make one", () => {
    using dir = tempDir();
    mkdirSync(dir.file("tmp"));
    chmodSync(dir.file("tmp"), 0o1777);
    mkdirSync(dir.file("ours"), { mode: 0o700 });
    symlinkSync(dir.file("ours"), dir.file("tmp/way"));
    expect(makePrivateFolder(dir.file("tmp/way/data"))).toBeNull();
    lchownSync(dir.file("tmp/way"), NOBODY, NOBODY);
    expect(makePrivateFolder(dir.file("tmp/way/data"))?.why).toContain("another user's");
    mkdirSync(dir.file("tmp/theirs"), { mode: 0o777 });
    chownSync(dir.file("tmp/theirs"), NOBODY, NOBODY);
    expect(makePrivateFolder(dir.file("tmp/theirs/data"))?.why).toContain("another user's");
    expect(makePrivateFolder(dir.file("tmp/own"))).toBeNull();
  });
}

import { expect, test } from "bun:test";
import { closeSync, openSync, readFileSync, readSync, writeFileSync } from "node:fs";
import { closeFd, duplicateFd, fdIdentity } from "../../src/lib/libc.ts";
import { tempDir } from "../support/temp-dir.ts";

const O_CLOEXEC = 0o2000000;

test("a duplicated descriptor is the same open file, and outlives the first", () => {
  using dir = tempDir();
  writeFileSync(dir.file("f"), "abcd");
  const first = openSync(dir.file("f"), "r");
  const second = duplicateFd(first) as number;
  const buffer = Buffer.alloc(2);
  readSync(first, buffer, 0, 2, null);
  expect(fdIdentity(second)).toBe(fdIdentity(first));
  closeSync(first);
  readSync(second, buffer, 0, 2, null);
  closeFd(second);
  expect([buffer.toString(), second === first, fdIdentity(second)]).toEqual(["cd", false, null]);
});

test("a duplicated descriptor closes in children", () => {
  const copy = duplicateFd(2) as number;
  const info = readFileSync(`/proc/self/fdinfo/${copy}`, "utf8");
  closeFd(copy);
  const flags = Number.parseInt(info.match(/^flags:\s*([0-7]+)$/m)?.[1] ?? "", 8);
  expect((flags & O_CLOEXEC) !== 0).toBe(true);
});

test("what is not open has no duplicate and no identity", () => {
  expect([duplicateFd(1_000_000), fdIdentity(1_000_000)]).toEqual([null, null]);
});

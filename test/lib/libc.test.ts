import { expect, test } from "bun:test";
import { closeSync, openSync, readSync, writeFileSync } from "node:fs";
import { closeFd, duplicateFd, fdIdentity } from "../../src/lib/libc.ts";
import { tempDir } from "../support/temp-dir.ts";

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

test("a duplicated descriptor is not inherited by children", () => {
  using dir = tempDir();
  writeFileSync(dir.file("f"), "");
  const first = openSync(dir.file("f"), "r");
  const copy = duplicateFd(first) as number;
  const script = `ls -l /proc/self/fd | grep -c ${dir.file("f")}`;
  const child = Bun.spawnSync(["bash", "-c", script]);
  closeSync(first);
  closeFd(copy);
  expect(child.stdout.toString()).toBe("0\n");
});

test("what is not open has no duplicate and no identity", () => {
  expect([duplicateFd(1_000_000), fdIdentity(1_000_000)]).toEqual([null, null]);
});

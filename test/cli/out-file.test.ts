import { expect, test } from "bun:test";
import { UsageError } from "../../src/cli/flags.ts";
import { outFile } from "../../src/cli/out-file.ts";
import { tempDir } from "../support/temp-dir.ts";

test("results go to a file that is there, or can be made, with its folders", async () => {
  using dir = tempDir();
  await Bun.write(dir.file("old"), "");
  for (const name of ["old", "new", "in/a/folder"]) {
    expect(outFile(dir.file(name))).toBe(dir.file(name));
  }
});

test("a file that can't be written is refused before the work is done", async () => {
  using dir = tempDir();
  await Bun.write(dir.file("old"), "");
  for (const path of [dir.path, dir.file("old/below")]) {
    expect(() => outFile(path)).toThrow(UsageError);
  }
});

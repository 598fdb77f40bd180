import { expect, test } from "bun:test";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { RowSource } from "../../src/cli/row-source.ts";
import { tempDir } from "../support/temp-dir.ts";

const SWAPS = 20;

test("a file of rows is read below the operator's folder alone, wherever its link leads meanwhile", async () => {
  using dir = tempDir();
  mkdirSync(dir.file("rows"));
  writeFileSync(dir.file("rows/real"), "row");
  writeFileSync(dir.file("elsewhere"), "secret");
  const rows = new RowSource({ folder: dir.file("rows"), allowedUrls: [], timeoutMs: 1000 });
  const link = dir.file("rows/link");
  const { signal } = new AbortController();
  for (let swap = 0; swap < SWAPS; swap++) {
    rmSync(link, { force: true });
    symlinkSync(dir.file("rows/real"), link);
    const reading = rows.read(link, 0, 100, signal).then(
      (bytes) => Buffer.from(bytes).toString(),
      ({ field }) => field,
    );
    rmSync(link);
    symlinkSync(dir.file("elsewhere"), link);
    expect(["row", "source.file"]).toContain(await reading);
  }
  expect(() => rows.check(link)).toThrow("that batches may read");
});

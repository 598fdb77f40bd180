import { expect, test } from "bun:test";
import { type LinePosition, readLines } from "../../src/lib/line-page.ts";

/** Reads all of `text` page by page, over a reader that gives at most `most` bytes at a time. */
async function readAll(text: string, most: number, maxLines = 3, maxLineBytes = 600_000) {
  const bytes = Buffer.from(text);
  const read = async (offset: number, size: number) =>
    bytes.subarray(offset, offset + Math.min(size, most));
  const seen: string[] = [];
  let at: LinePosition = { offset: 0, line: 0 };
  for (;;) {
    const lines = await readLines(read, at, { maxLines, maxLineBytes });
    expect(lines.length).toBeLessThanOrEqual(maxLines);
    const last = lines.at(-1);
    if (!last) return { seen, at };
    seen.push(...lines.map((line) => Buffer.from(line.bytes).toString()));
    at = last.end;
  }
}

test("gives each line once, with or without a newline at the end, however long", async () => {
  const lines = ["a", "", "é€😀", "x".repeat(500_000), "last"];
  for (const end of ["", "\n"]) {
    const text = lines.join("\n") + end;
    const { seen, at } = await readAll(text, Number.POSITIVE_INFINITY);
    expect([seen, at]).toEqual([lines, { offset: Buffer.byteLength(text), line: 5 }]);
  }
  expect((await readAll("", 10)).seen).toEqual([]);
});

test("a line that is too long is refused by its number, at once and at the end", async () => {
  const long = "x".repeat(101);
  for (const text of [`a\n${long}\nb\n`, `a\n${long}`, `a\n${long.repeat(100)}`]) {
    const reading = readAll(text, 1e9, 3, 100);
    expect(reading).rejects.toThrow("line 2 is longer than 100 bytes");
  }
  const fits = "x".repeat(100);
  expect((await readAll(`a\n${fits}`, 1e9, 3, 100)).seen).toEqual(["a", fits]);
  expect((await readAll(`${fits}\na`, 1e9, 3, 100)).seen).toEqual([fits, "a"]);
});

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "..");
const NUMBERS = Array.from({ length: 21 }, (_, index) => `P${index + 1}`);

/** Numbers that the names of a file's tests begin with: `"P2, P9: a clock …"`. */
function namedIn(file: string): string[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  const names = text.matchAll(/["`](P\d+(?:, P\d+)*): /g);
  return [...names].flatMap(([, numbers = ""]) => numbers.split(", "));
}

test("each promise has a row, and each test file of its row a test of its number", () => {
  const page = readFileSync(join(ROOT, "RELIABILITY.md"), "utf8");
  const rows = page.split("\n").flatMap((line) => {
    const [, number = "", , tests = ""] = line.split("|").map((cell) => cell.trim());
    return /^P\d+$/.test(number) ? [{ number, files: [...tests.matchAll(/`([^`]+)`/g)] }] : [];
  });
  expect(rows.map(({ number }) => number)).toEqual(NUMBERS);
  const without = rows.flatMap(({ number, files }) => {
    const unnamed = files.filter(([, file = ""]) => !namedIn(file).includes(number));
    return files.length === 0 ? [number] : unnamed.map(([, file]) => `${number} ${file}`);
  });
  expect(without).toEqual([]);
});

import { expect, test } from "bun:test";
import { formatTable, seconds } from "../../src/cli/table.ts";

test("columns are as wide as their widest cell, with numbers to the right and no blanks at the end", () => {
  const rows = [
    ["a", "12.50", "x"],
    ["longer", "-3", ""],
  ];
  expect(formatTable(["id", "n", "why"], rows)).toBe(
    ["id          n  why", "a       12.50  x", "longer     -3", ""].join("\n"),
  );
});

test("one text in a column of numbers makes it a column of text", () => {
  expect(formatTable(["reward"], [["1"], ["failed"]])).toBe("reward\n1\nfailed\n");
});

test("a cell that is missing is empty", () => {
  expect(formatTable(["a", "b"], [["x"]])).toBe("a  b\nx\n");
});

test("seconds have two places, and one from ten seconds on", () => {
  expect([0, 5, 1234, 9_999, 10_000, 61_250].map(seconds)).toEqual([
    "0.00",
    "0.01",
    "1.23",
    "10.00",
    "10.0",
    "61.3",
  ]);
});

test("a cell is one line and one column, whatever others have written in it", () => {
  const text = formatTable(
    ["name", "n"],
    [
      ["a\nFAKE  1", "1"],
      ["b\tc", "2"],
    ],
  );
  expect(text).toBe("name        n\na\\nFAKE  1  1\nb\\tc        2\n");
});

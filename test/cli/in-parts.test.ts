import { expect, test } from "bun:test";
import { inParts } from "../../src/cli/in-parts.ts";

test("a list is cut by number and by size, and nothing is lost, doubled or out of order", () => {
  const many = Array.from({ length: 1201 }, (_, n) => n);
  expect(inParts(many).map((part) => part.length)).toEqual([500, 500, 201]);
  expect(inParts(many).flat()).toEqual(many);
  const mebibyte = "x".repeat(1 << 20);
  expect(inParts(Array(20).fill(mebibyte)).map((part) => part.length)).toEqual([7, 7, 6]);
  expect(inParts([mebibyte.repeat(9), "a", "b"]).map((part) => part.length)).toEqual([1, 2]);
  expect(inParts([])).toEqual([]);
});

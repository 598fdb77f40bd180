import { expect, test } from "bun:test";
import { readPythonJson, sameValue } from "../../src/verifiers/program-value.ts";

const same = (got: string, expected: unknown) => sameValue(readPythonJson(got), expected);

test("values are compared as Python compares, and one that is wrapped in a list by itself", () => {
  expect(sameValue([1, [2, "x"]], [1, [2, "x"]])).toBe(true);
  expect(sameValue(0.1 + 0.2, 0.3)).toBe(true);
  expect(sameValue([0, 1], [[0, 1]])).toBe(true);
  expect(sameValue({ a: 1, b: null }, { b: null, a: 1 })).toBe(true);
  expect(sameValue(10n ** 16n, 1e16)).toBe(true);
  expect(sameValue(1, true)).toBe(true);
  expect(sameValue(false, 0)).toBe(true);
  for (const [got, wanted] of [
    [1, "1"],
    [2, true],
    [
      [1, 2],
      [2, 1],
    ],
    [[1], [1, 2]],
    [null, 0],
    [null, false],
    [{}, []],
    [{ a: 1 }, { b: 1 }],
    [2 ** 52, 2 ** 52 + 1],
    [2n ** 53n, 2n ** 53n + 1n],
  ]) {
    expect(sameValue(got, wanted)).toBe(false);
  }
});

test("whole numbers are compared by every digit, also with what was written as a float", () => {
  expect(same("1e+17", 10n ** 17n)).toBe(true);
  expect(same("1e+17", 10n ** 17n + 1n)).toBe(false);
  expect(same("100000000000000001", 1e17)).toBe(false);
  expect(same("100000000000000000", 1e17)).toBe(true);
  expect(same("9007199254740993", 9007199254740992n)).toBe(false);
  expect(same("3.0", 3)).toBe(true);
  expect(same("3.0000000000001", 3)).toBe(false);
  expect(same("999999999.9999999", 1_000_000_000)).toBe(false);
  expect(same("2.5000000000001", 2.5)).toBe(true);
  expect(same("2", 2.0000000000001)).toBe(true);
});

test("a number that is too long to be read is equal to nothing", () => {
  const [long, other] = ["1", "2"].map((digit) => readPythonJson(digit.repeat(5000)));
  expect(sameValue(long, other)).toBe(false);
  expect(same("1e999", readPythonJson("2e999"))).toBe(false);
});

test("a set is met in any order, and only by the same values", () => {
  expect(same('{"__set__": [3, 1, 2]}', [1, 2, 3])).toBe(true);
  expect(same('{"__set__": ["b", "a"]}', ["a", "b"])).toBe(true);
  expect(same('{"__set__": [true, 2]}', [2, 1])).toBe(true);
  expect(
    same('{"__set__": [[2, 1], [1, 2]]}', [
      [1, 2],
      [2, 1],
    ]),
  ).toBe(true);
  expect(same('{"__set__": [1, 2, 2]}', [1, 2])).toBe(false);
  expect(same('{"__set__": [1, 4]}', [1, 2])).toBe(false);
});

test("what JSON has no words for is read as Python writes it", () => {
  expect(same("[NaN, -Infinity]", readPythonJson("[NaN, -Infinity]"))).toBe(true);
  expect(same("Infinity", readPythonJson("-Infinity"))).toBe(false);
  expect(same('["NaN", "a \\" Infinity"]', ["NaN", 'a " Infinity'])).toBe(true);
});

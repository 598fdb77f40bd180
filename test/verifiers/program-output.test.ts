import { expect, test } from "bun:test";
import { sameOutput } from "../../src/verifiers/program-output.ts";

test.each([
  ["1 2\n3\n", "1 2\n3"],
  ["1  2 \n3", "1 2\n3"],
  ["1.0", "1"],
  ["1e3", "1000.00"],
  ["-0.50", "-.5"],
  ["0.0", "-0"],
  ["YES\r\n", "YES"],
  ["123456789012345678901234567890", "123456789012345678901234567890"],
])("%j is what %j asks for", (printed, expected) => {
  expect(sameOutput(printed, expected)).toBe(true);
});

test.each([
  ["1\n2", "1 2"],
  ["1 2 3", "1 2"],
  ["yes", "YES"],
  ["1.0000001", "1"],
  ["123456789012345678901234567890", "123456789012345678901234567891"],
  ["nan", "0"],
  ["", "0"],
  ["0x10", "16"],
  ["1_000", "1000"],
])("%j is not what %j asks for", (printed, expected) => {
  expect(sameOutput(printed, expected)).toBe(false);
});

test("a tolerance is for numbers that are expected not to be whole", () => {
  expect(sameOutput("0.3333333", "0.33333333", 1e-6)).toBe(true);
  expect(sameOutput("1000000.5", "1000000.0", 1e-6)).toBe(true);
  expect(sameOutput("1000001", "1000000", 1e-6)).toBe(false);
  expect(sameOutput("1000000.5", "1000000", 1e-6)).toBe(false);
  expect(sameOutput("2.9999999", "3", 1e-6)).toBe(false);
  expect(sameOutput("0.34", "0.33333333", 1e-6)).toBe(false);
});

test.each(["1.5", "-1.5e400", "2.5e400"])("no tolerance makes %j of 1.5e400", (printed) => {
  expect(sameOutput(printed, "1.5e400", 1e-6)).toBe(false);
});

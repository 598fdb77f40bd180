import { expect, test } from "bun:test";
import { isDeeperThan } from "../../src/lib/json-depth.ts";

test("brackets count as deep as they lie within each other, and in strings not at all", () => {
  const cases: [string, boolean][] = [
    ["1", false],
    ["[[1], [2], {}]", false],
    ['[{"a": []}]', true],
    [String.raw`[["[[\\\"[["]]`, false],
    ['["', false],
  ];
  for (const [text, deeper] of cases) expect([text, isDeeperThan(2, text)]).toEqual([text, deeper]);
});

import { describe, expect, test } from "bun:test";
import { whyTooComplex } from "../../src/lib/json-bounds.ts";
import { randomFrom } from "../support/random.ts";

const MIB = 1024 * 1024;
const why = (text: string) => whyTooComplex(Buffer.from(text));

describe("JSON that costs more than its bytes is told before it is parsed:", () => {
  test.each([
    ["brackets without an end", "[".repeat(8 * MIB), "within each other"],
    ["brackets that close", "[".repeat(4 * MIB) + "]".repeat(4 * MIB), "within each other"],
    ["objects within objects", '{"a":'.repeat(MIB), "within each other"],
    ["brackets behind strings of quotes", `${'["\\\\\\"",'.repeat(MIB)}`, "within each other"],
    ["millions of empty objects", `[${"{},".repeat(3 * MIB)}{}]`, "more than 2000000 lists"],
    [
      "an object of too many keys",
      `{${Array.from({ length: 100_001 }, (_, n) => `"${n}":0`).join(",")}}`,
      "more than 100000 keys",
    ],
  ])("%s", (_name, text, told) => {
    const before = process.cpuUsage();
    expect(why(text)).toContain(told);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(1500);
  });
});

test("nothing in a string counts, whatever stands before its end", () => {
  const hostile = "[{:".repeat(1000);
  for (const text of [hostile, `${hostile}\\`, `\\"${hostile}`, `\\\\${hostile}"`])
    expect(why(JSON.stringify({ [text]: [text, text] }))).toBeNull();
  expect(why(`"${"\\".repeat(2 * MIB)}"`)).toBeNull();
});

test("what JSON.stringify writes of a value of bounded depth is taken, byte for byte as deep as it is", () => {
  const draw = randomFrom(5);
  const below = (limit: number) => Math.floor(draw() * limit);
  const text = () => Array.from({ length: below(8) }, () => '"\\[]{}:,a'[below(9)]).join("");
  const value = (depth: number): unknown => {
    if (depth === 0) return [text(), below(9), null][below(3)];
    if (below(2) === 0) return [value(depth - 1), text()];
    return { [text()]: value(depth - 1), b: text() };
  };
  for (let round = 0; round < 300; round++) {
    expect(why(JSON.stringify(value(256)))).toBeNull();
    expect(why(JSON.stringify([value(256)]))).toContain("within each other");
  }
});

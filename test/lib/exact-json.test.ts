import { describe, expect, test } from "bun:test";
import { parseExactJson, parseKeepingDigits } from "../../src/lib/exact-json.ts";
import { randomFrom } from "../support/random.ts";

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;

/** The same by the language's own means, at fifty times the cost. */
function byReviver(text: string): unknown {
  return (JSON.parse as (text: string, reviver: Reviver) => unknown)(
    text,
    (_key, value, { source = "" }) =>
      typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d{16,4300}$/.test(source)
        ? BigInt(source)
        : value,
  );
}

const ATOMS = [
  ...["12345678901234567890", "-9007199254740993", "9007199254740991", "1000000000000000"],
  ...["1234567890123456.5", "12345678901234567e2", "1e-1234567890123456", "-0", "0", "1", "true"],
  ...[
    '"12345678901234567890"',
    '"\\"12345678901234567890"',
    '"\\\\"',
    '"a\\\\\\"9007199254740993"',
  ],
  ...["9".repeat(4300), "9".repeat(4301), "null", '""'],
];
const KEYS = ['"a"', '"12345678901234567890"', '"\\""', '"__proto__"', '""', '"length"'];

describe("JSON with numbers of many digits", () => {
  test("is what the language's reviver makes of it, and refused where it is no JSON", () => {
    const draw = randomFrom(14);
    const of = <T>(list: readonly T[]) => list[Math.floor(draw() * list.length)] as T;
    const blank = () => of(["", "", " ", "\n\t"]);
    const value = (depth: number): string => {
      const many = Array.from({ length: Math.floor(draw() * 4) });
      const kind = depth === 0 ? 0 : draw();
      if (kind < 0.4) return of(ATOMS);
      if (kind < 0.7) return `[${many.map(() => value(depth - 1)).join(`${blank()},${blank()}`)}]`;
      const entry = () => `${of(KEYS)}${blank()}:${blank()}${value(depth - 1)}`;
      return `{${blank()}${many.map(entry).join(",")}}`;
    };
    const outcome = (parse: (text: string) => unknown, text: string) => {
      try {
        return parse(text);
      } catch (error) {
        return (error as Error).message;
      }
    };
    for (let index = 0; index < 2000; index++) {
      const whole = value(4);
      const at = Math.floor(draw() * whole.length);
      const torn =
        whole.slice(0, at) + of(["", "1", '"', "\\", ":", ",", "]"]) + whole.slice(at + 1);
      for (const text of [whole, torn]) {
        expect([text, outcome(parseExactJson, text)]).toEqual([text, outcome(byReviver, text)]);
      }
    }
    for (const text of [
      "{12345678901234567890:1}",
      "[012345678901234567890]",
      "[1234567890123456n]",
    ])
      expect(() => parseExactJson(text)).toThrow(SyntaxError);
  });

  test("costs in proportion to its bytes, one such number among millions of others or not", () => {
    const numbers = `${"1,".repeat(300_000)}1`;
    const cpuMs = (work: () => unknown) => {
      const before = process.cpuUsage();
      work();
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1000;
    };
    const least = (work: () => unknown) => Math.min(...[1, 2, 3, 4, 5].map(() => cpuMs(work)));
    const text = `[12345678901234567890,${numbers}]`;
    const plain = least(() => byReviver(text));
    expect(least(() => parseKeepingDigits(text))).toBeLessThan(plain / 3);
  });

  test("of any depth is read", () => {
    const deep = `${"[".repeat(50_000)}12345678901234567890${"]".repeat(50_000)}`;
    let value = parseExactJson(deep);
    while (Array.isArray(value)) value = value[0];
    expect(value).toBe(12345678901234567890n);
  });
});

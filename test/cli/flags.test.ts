import { describe, expect, test } from "bun:test";
import { actionOf, parseFlags, refuseExtra, wholeNumber } from "../../src/cli/flags.ts";
import { usageOf } from "./usage.ts";

const OPTIONS = { name: { type: "string" }, json: { type: "boolean" } } as const;

describe("a command line", () => {
  test("has flags and arguments in any order", () => {
    const { values, positionals } = parseFlags(["a", "--name", "x", "b", "--json"], OPTIONS);
    expect([{ ...values }, positionals]).toEqual([{ name: "x", json: true }, ["a", "b"]]);
  });

  test("can switch a flag off", () => {
    expect({ ...parseFlags(["--no-json"], OPTIONS).values }).toEqual({ json: false });
  });

  test("with an unknown flag, or one whose value is missing, can't be understood", () => {
    expect(usageOf(() => parseFlags(["--nam", "x"], OPTIONS))).toBe(
      "there is no flag --nam (did you mean --name?)",
    );
    expect(usageOf(() => parseFlags(["--no-jsn"], OPTIONS))).toContain("(did you mean --json?)");
    expect(usageOf(() => parseFlags(["--seed", "1"], OPTIONS))).toBe("there is no flag --seed");
    expect(usageOf(() => parseFlags(["--name"], OPTIONS))).toBe("--name needs a value");
  });

  test("names the actions that there are, or the one that was meant", () => {
    const actions = { list: [], cancel: [] };
    expect(actionOf("cancel", actions)).toBe("cancel");
    expect(usageOf(() => actionOf(undefined, actions))).toBe("an action is missing: list, cancel");
    expect(usageOf(() => actionOf("toString", actions))).toContain('no action "toString"');
    expect(usageOf(() => actionOf("cancle", actions))).toBe(
      'there is no action "cancle" (did you mean cancel?)',
    );
  });

  test("has no more arguments than the command takes", () => {
    refuseExtra(["a", "b"], 2);
    expect(usageOf(() => refuseExtra(["a", "b", "c"], 2))).toBe("unexpected argument: c");
  });
});

describe("a whole number", () => {
  test("is taken from its least value on", () => {
    expect([wholeNumber("--n", "0"), wholeNumber("--n", "12", 1)]).toEqual([0, 12]);
  });

  test.each(["", " ", "-1", "1.5", "x", "1x", "NaN", "Infinity"])("is not %s", (text) => {
    expect(usageOf(() => wholeNumber("--limit", text))).toBe(
      `--limit takes a whole number of at least 0, not "${text}"`,
    );
  });

  test("is not less than its least value", () => {
    expect(usageOf(() => wholeNumber("--limit", "0", 1))).toContain("at least 1");
  });
});

import { expect, test } from "bun:test";
import { formatFailures } from "../../src/cli/run-failures.ts";
import { failedView, viewOf } from "./views.ts";

const failed = (id: string, message: string, mend?: string) => {
  const view = failedView(id);
  if (!view.error) throw new Error("it has no error");
  return { ...view, error: { ...view.error, message, ...(mend === undefined ? {} : { mend }) } };
};

test("each reason is told once with what to do about it, the most frequent first", () => {
  const results = [
    viewOf("good"),
    failed("a", "port 1 refused", "start the engine"),
    failed("b", "no answer in 100 ms"),
    ...["c", "d", "e"].map((id, n) => failed(id, `no answer in ${101 + n} ms`)),
  ];
  expect(formatFailures(results)).toBe(`
Why:
  4 × engine_timeout in run: no answer in 100 ms
      b, c, d, …
  1 × engine_timeout in run: port 1 refused
      start the engine
      a
`);
});

test("an engine's words can't move the cursor, and of many reasons only some are told", () => {
  expect(formatFailures([failed("a", "\x1b[2Jgone\nfor good")])).toContain("gone\n      for good");
  const reasons = [..."abcdefghijklm"].map((letter) => failed(letter, letter.repeat(3)));
  const lines = formatFailures(reasons).trimEnd().split("\n");
  expect(lines.at(-1)).toBe("  and 3 other reasons");
});

test("where nothing failed nothing is said", () => {
  expect(formatFailures([viewOf("good")])).toBe("");
});

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { compareMathAnswer } from "../../src/verifiers/math-answer.ts";

/**
 * A pair with the verdict of math_verify 0.9.0, recorded by `record-math-verify`. `typical`: what data sets ask and
 * models write, put together before either was asked. `hard`: made to find where verifiers go wrong.
 * `why` stands where ours differs, on purpose.
 */
type Pair = {
  set: "typical" | "hard";
  truth: string;
  answer: string;
  math_verify: boolean;
  why?: string;
};

const PAIRS: Pair[] = readFileSync(join(import.meta.dir, "math-verify.jsonl"), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line));

async function differs({ truth, answer, math_verify }: Pair): Promise<boolean> {
  const said = `Therefore the answer is $\\boxed{${answer}}$.`;
  const { reward } = await compareMathAnswer(said, [truth]);
  return (reward === 1) !== math_verify;
}

describe("beside math_verify", () => {
  test("the verdict is the same, or the table says why it is not", async () => {
    const unexplained: Pair[] = [];
    for (const pair of PAIRS) {
      if ((await differs(pair)) !== (pair.why !== undefined)) unexplained.push(pair);
    }
    expect(unexplained).toEqual([]);
  });

  test("at least 99 of 100 typical pairs have the same verdict", () => {
    const typical = PAIRS.filter(({ set }) => set === "typical");
    const same = typical.filter(({ why }) => why === undefined);
    expect(typical.length).toBeGreaterThanOrEqual(400);
    expect(same.length / typical.length).toBeGreaterThanOrEqual(0.99);
  });
});

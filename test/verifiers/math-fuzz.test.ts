import { expect, test } from "bun:test";
import { compareMathAnswer } from "../../src/verifiers/math-answer.ts";
import { randomFrom } from "../support/random.ts";
import { drawCase, drawFrom, type MathCase } from "./math-cases.ts";

const CASES = Number(process.env.ROLLOUTD_TEST_MATH ?? 1_500);
const SEED = Number(process.env.ROLLOUTD_TEST_SEED ?? Date.now() % 2 ** 31);
const SHOWN = 40;

test("an answer that is drawn right earns 1, and one that is drawn wrong earns nothing", async () => {
  console.log(`${CASES} math verdicts; ROLLOUTD_TEST_SEED=${SEED}`);
  const draw = drawFrom(randomFrom(SEED));
  const failed = new Map<string, MathCase & { rule: string }>();
  for (let count = 0; count < CASES; count++) {
    const drawn = drawCase(draw);
    const { reward, rule } = await compareMathAnswer(drawn.message, [drawn.truth], drawn.problem);
    if ((reward === 1) === drawn.right) continue;
    // The shortest of its kind tells most.
    const known = failed.get(drawn.how);
    if (!known || drawn.message.length < known.message.length)
      failed.set(drawn.how, { ...drawn, rule });
  }
  expect([...failed.values()].slice(0, SHOWN)).toEqual([]);
}, 3_600_000);

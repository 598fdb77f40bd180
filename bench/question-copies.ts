import { compareMathAnswer } from "../src/verifiers/math-answer.ts";
import { randomFrom } from "../test/support/random.ts";
import { drawFrom } from "../test/verifiers/math-cases.ts";
import { copiesOf } from "../test/verifiers/math-questions.ts";
import { print, round } from "./line.ts";

const PROBLEMS = 1_000;
const SEED = 20_260_101;
const MAX_SHARE = 0.01;

/** How many drawn problems give the reward to a formula of theirs that is boxed as it stands, or changed trivially. */
export async function questionCopies(): Promise<void> {
  const draw = drawFrom(randomFrom(SEED));
  let earned = 0;
  for (let count = 0; count < PROBLEMS; count++) {
    let any = false;
    for (const { problem, truth, copy } of copiesOf(draw)) {
      any ||= (await compareMathAnswer(`\\boxed{${copy}}`, [truth], problem)).reward === 1;
    }
    if (any) earned++;
  }
  const share = round(earned / PROBLEMS);
  print({
    bench: "verify-math",
    case: "problems of which some formula, boxed as it stands, earns the reward",
    n: PROBLEMS,
    share,
    unit: "share",
    target: `below ${MAX_SHARE}`,
    met: share < MAX_SHARE,
  });
}

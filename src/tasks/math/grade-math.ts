import { ServiceError } from "../../errors.ts";
import { gradeMathAnswer } from "../../verifiers/math-answer.ts";
import type { Verdict } from "../../verifiers/verdict.ts";

/**
 * Grades an answer to mathematics. An answer that differs from a truth beyond the comparer may still be right, so that it
 * gets no reward at all.
 *
 * @throws ServiceError `truth_unreadable`
 */
export async function gradeMath(...given: Parameters<typeof gradeMathAnswer>): Promise<Verdict> {
  const verdict = await gradeMathAnswer(...given);
  if (verdict.rule !== "unparsable_truth") return verdict;
  throw new ServiceError("truth_unreadable", verdict.reason, {
    mend: "write the row's truth in a form that can be compared, or take the row out",
  });
}

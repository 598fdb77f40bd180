/** What EVAL decided. It exists only if the verifier really ran to its end. */
export type Verdict = {
  /** From 0 to 1. */
  reward: number;
  /** The rule that gave the reward, stable enough to be counted: `equal_number`, `no_boxed_answer`, … */
  rule: string;
  /** One sentence for a person. */
  reason: string;
  /** What it rests on, for people: results per test, a judge's answers. At most some kilobytes. */
  details?: Record<string, unknown>;
};

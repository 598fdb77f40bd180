/**
 * Of which distribution an engine's log-probabilities are: the model's own (`raw`, as vLLM gives them), the one
 * after temperature (`temperature`, SGLang), or the one that was sampled from, after temperature and filters such
 * as top_p (`processed`, vLLM with `--logprobs-mode processed_logprobs`). With temperature 1 and no filter they
 * are the same.
 */
export type LogprobsMode = "raw" | "temperature" | "processed";

/** What shows it: the most probable token is the only one that is left, and the others have come nearer to it. */
export const TELLING_SAMPLING = { temperature: 2, top_k: 1 } as const;

/** A model that is so sure tells nothing: its log-probability is about 0 in every mode. */
const SURE = -0.05;
/** More than what another batch size changes, less than what twice the temperature does. */
const SAME = 0.03;

/**
 * How an engine means its log-probabilities, by those of the same token after the same prompt.
 *
 * @param own sampled greedily, where all modes are the same @param telling with `TELLING_SAMPLING`
 * @returns null where they do not tell
 */
export function logprobsModeOf(own: number, telling: number): LogprobsMode | null {
  if (own > SURE) return null;
  if (Math.abs(telling - own) <= SAME * Math.max(1, -own)) return "raw";
  if (telling > SURE) return "processed";
  return telling < own ? "temperature" : null;
}

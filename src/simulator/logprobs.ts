/**
 * Of which distribution an engine's log-probabilities are: the model's own, the one after temperature, or the one that
 * was sampled from, after temperature and filters.
 */
export const LOGPROBS_MODES = ["raw", "temperature", "processed"] as const;
export type LogprobsMode = (typeof LOGPROBS_MODES)[number];

/** What changes a distribution that is sampled from. `topK` is -1 for no limit. */
export type Filters = { temperature: number; topK: number };

/**
 * The log-probability that an engine of this mode shows where the model's own is `raw`. There is no distribution
 * behind it: it is as far away as one would have it, so that whoever mixes the modes up is found out.
 */
export function shownLogprob(mode: LogprobsMode, filters: Filters, raw: number): number {
  const { temperature, topK } = filters;
  // Greedy sampling leaves the distribution as it is.
  if (mode === "raw" || temperature === 0) return raw;
  if (mode === "processed" && topK === 1) return 0;
  return raw * temperature;
}

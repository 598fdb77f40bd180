import { z } from "zod";
import type { WireRequest } from "./wire.ts";

const count = z.number().int().min(0).nullish();

/** How vLLM counts, on all its routes. */
export const usageSchema = z
  .object({
    prompt_tokens: count,
    completion_tokens: count,
    prompt_tokens_details: z.object({ cached_tokens: count }).nullish(),
  })
  .nullish();

export function readUsage(usage: z.output<typeof usageSchema>) {
  return {
    promptTokens: usage?.prompt_tokens ?? null,
    completionTokens: usage?.completion_tokens ?? null,
    cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? null,
  };
}

export const weightSpansSchema = z
  .array(z.object({ version: z.coerce.string(), start: z.number(), end: z.number() }))
  .nullish()
  .transform((spans) => spans ?? []);

/**
 * Everything that `generation_config.json` on the server would decide otherwise, by the names of
 * vLLM's `SamplingParams`.
 */
export function samplingParams({ sampling, stopTokenIds, maxTokens }: WireRequest) {
  const { temperature = 1, top_p = 1, top_k = -1, max_tokens: _, ...given } = sampling;
  const chosen = { temperature, top_p, top_k, n: 1, max_tokens: maxTokens, ...given };
  return { ...chosen, stop_token_ids: stopTokenIds };
}

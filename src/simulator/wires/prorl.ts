import { z } from "zod";
import type { Format } from "./format.ts";
import { samplingOf, samplingSchema } from "./vllm.ts";

/** The keys of vLLM's `SamplingParams` that there are; it fails on any other. */
const requestSchema = z.strictObject({
  ...samplingSchema.shape,
  prompt_ids: z.array(z.number().int().min(0)).min(1),
  top_p: z.number().optional(),
  min_p: z.number().optional(),
  presence_penalty: z.number().optional(),
  frequency_penalty: z.number().optional(),
  repetition_penalty: z.number().optional(),
});

/** The `/generate` of the engine that comes with ProRL: nothing but ids and log-probabilities. */
export const prorlGenerate: Format = (body) => {
  const request = requestSchema.parse(body);
  return {
    asking: {
      model: null,
      prompt: { ids: request.prompt_ids },
      salt: "",
      ...samplingOf(request),
    },
    write: ({ sampled }) => ({ response_ids: sampled.ids, logprobs: sampled.logprobs }),
  };
};

import { z } from "zod";
import { samplingParams } from "./vllm.ts";
import { NOTHING_SAID, readShape, type Wire } from "./wire.ts";

const replySchema = z.object({
  response_ids: z.array(z.unknown()),
  logprobs: z.array(z.unknown()).nullish(),
});

/**
 * The `/generate` of the engine that comes with ProRL. It hands every key but the prompt to vLLM's
 * `SamplingParams`, so there is no model, no request id and no salt, and it tells no reason for the
 * end.
 */
export const prorlGenerate: Wire = {
  root: "root",
  path: "/generate",
  body: (request) => ({ prompt_ids: request.promptIds, ...samplingParams(request) }),
  read(shown, value, { stopTokenIds, maxTokens }) {
    const reply = readShape(replySchema, shown, "a reply of ProRL's generate", value);
    const { response_ids: tokenIds, logprobs } = reply;
    const last = tokenIds.at(-1);
    const stopped = stopTokenIds.some((id) => id === last);
    const cut = !stopped && tokenIds.length >= maxTokens;
    const finish = cut ? "length" : "stop";
    return { ...NOTHING_SAID, tokenIds, logprobs: logprobs ?? null, finish };
  },
};

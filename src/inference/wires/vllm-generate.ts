import { z } from "zod";
import { type Json, lengthOf, streamedByVllm } from "./streamed.ts";
import { readUsage, samplingParams, usageSchema, weightSpansSchema } from "./vllm.ts";
import { idInText, NOTHING_SAID, readShape, type Wire } from "./wire.ts";

const replySchema = z.object({
  output_mode: z.literal("tokens").nullish(),
  usage: usageSchema,
  choices: z.tuple([
    z.object({
      finish_reason: z.unknown().optional(),
      stop_reason: z.unknown().optional(),
      token_ids: z.array(z.unknown()),
      logprobs: z.object({ content: z.array(z.looseObject({})).nullish() }).nullish(),
      weight_versions: weightSpansSchema,
    }),
  ]),
});

/**
 * vLLM's `/inference/v1/generate`.
 *
 * Older builds have the log-probabilities in the shape of a chat, with `token: "token_id:N"`
 * instead of `token_id`, no `usage` and no `output_mode`.
 */
export const vllmGenerate: Wire = {
  root: "root",
  path: "/inference/v1/generate",
  body(request, requestId) {
    const { model, promptIds, sampling, cacheSalt } = request;
    // Strings to stop at are found in text only.
    const detokenize = (sampling.stop?.length ?? 0) > 0;
    return {
      request_id: requestId,
      model,
      token_ids: promptIds,
      sampling_params: {
        ...samplingParams(request),
        logprobs: 0,
        detokenize,
        skip_special_tokens: false,
      },
      ...(cacheSalt !== undefined && { cache_salt: cacheSalt }),
      stream: false,
      output_mode: "tokens",
    };
  },
  streamed: streamedByVllm(({ choices }) => lengthOf((choices as [Json])[0].token_ids)),
  read(shown, value) {
    const reply = readShape(replySchema, shown, "a reply of vLLM's generate", value);
    const [choice] = reply.choices;
    const content = choice.logprobs?.content;
    return {
      ...NOTHING_SAID,
      ...readUsage(reply.usage),
      tokenIds: choice.token_ids,
      logprobs: content?.map(({ logprob }) => logprob) ?? null,
      logprobIds: content?.map(({ token_id, token }) => token_id ?? idInText(token)) ?? null,
      finish: choice.finish_reason,
      matched: choice.stop_reason,
      weightSpans: choice.weight_versions,
      weightVersion: choice.weight_versions.at(-1)?.version ?? null,
    };
  },
};

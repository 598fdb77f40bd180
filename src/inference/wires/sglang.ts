import { z } from "zod";
import { type Json, lengthOf, type Streamed } from "./streamed.ts";
import { weightSpansSchema } from "./vllm.ts";
import { NOTHING_SAID, readShape, type Wire } from "./wire.ts";

const count = z.number().int().min(0).nullish();

const replySchema = z.object({
  output_ids: z.array(z.unknown()).nullish(),
  meta_info: z.object({
    finish_reason: z.union([
      z.object({ type: z.unknown().optional(), matched: z.unknown().optional() }),
      z.string(),
      z.null(),
    ]),
    prompt_tokens: count,
    completion_tokens: count,
    cached_tokens: count,
    weight_version: z.coerce.string().nullish(),
    weight_versions: weightSpansSchema,
    output_token_logprobs: z.array(z.array(z.unknown()).min(2)).nullish(),
    num_running_reqs: count,
    num_waiting_reqs: count,
    queue_time: z.number().min(0).nullish(),
  }),
});

/**
 * SGLang's pieces are new tokens only where it was started with `--incremental-streaming-output`; otherwise
 * each repeats all before it, at a cost that grows with the square of the reply.
 */
const streamed: Streamed = {
  ask: { stream: true },
  add(reply, piece) {
    if (reply === null) return piece;
    const meta = piece.meta_info as Json | undefined;
    const ids = listOf(piece.output_ids);
    const all = listOf(reply.output_ids);
    if (all.length > 0 && ids.length > 0 && ids.length === meta?.completion_tokens) {
      throw new Error("each piece of the stream repeats the ones before");
    }
    const pairs = listOf((reply.meta_info as Json | undefined)?.output_token_logprobs);
    // The piece that says that a waiting request was aborted repeats its last id.
    const isNew = all.length !== meta?.completion_tokens;
    for (const id of isNew ? ids : []) all.push(id);
    for (const pair of isNew ? listOf(meta?.output_token_logprobs) : []) pairs.push(pair);
    const meta_info = { ...meta, ...(pairs.length > 0 && { output_token_logprobs: pairs }) };
    return { ...piece, output_ids: all, meta_info };
  },
  count: ({ output_ids }) => lengthOf(output_ids),
};

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/**
 * SGLang's own `/generate`. Builds without `output_ids` have the ids beside the log-probabilities
 * only.
 */
export const sglangGenerate: Wire = {
  root: "root",
  path: "/generate",
  body(request, requestId) {
    const { promptIds, sampling, stopTokenIds, cacheSalt, maxTokens } = request;
    const { temperature = 1, top_p = 1, top_k = -1, seed, max_tokens: _, ...given } = sampling;
    return {
      rid: requestId,
      input_ids: promptIds,
      sampling_params: {
        max_new_tokens: maxTokens,
        temperature,
        top_p,
        top_k,
        n: 1,
        ...given,
        ...(seed !== undefined && { sampling_seed: seed }),
        stop_token_ids: stopTokenIds,
        skip_special_tokens: false,
        no_stop_trim: true,
      },
      return_logprob: true,
      logprob_start_len: -1,
      ...(cacheSalt !== undefined && { extra_key: cacheSalt }),
      stream: false,
    };
  },
  streamed,
  read(shown, value) {
    const reply = readShape(replySchema, shown, "a reply of SGLang's generate", value);
    const { meta_info: meta } = reply;
    const pairs = meta.output_token_logprobs;
    const logprobIds = pairs?.map((pair) => pair[1]) ?? null;
    const finish = meta.finish_reason;
    const queueS = meta.queue_time ?? null;
    return {
      ...NOTHING_SAID,
      tokenIds: reply.output_ids ?? logprobIds ?? [],
      logprobs: pairs?.map((pair) => pair[0]) ?? null,
      logprobIds,
      finish: typeof finish === "object" ? finish?.type : finish,
      matched: typeof finish === "object" ? finish?.matched : null,
      promptTokens: meta.prompt_tokens ?? null,
      completionTokens: meta.completion_tokens ?? null,
      cachedTokens: meta.cached_tokens ?? null,
      weightSpans: meta.weight_versions,
      weightVersion: meta.weight_version ?? meta.weight_versions.at(-1)?.version ?? null,
      load:
        typeof meta.num_running_reqs === "number"
          ? { running: meta.num_running_reqs, waiting: meta.num_waiting_reqs ?? 0 }
          : null,
      queueMs: queueS === null ? null : queueS * 1000,
    };
  },
};

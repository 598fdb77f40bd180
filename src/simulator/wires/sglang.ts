import { z } from "zod";
import type { Format, NewTokens, Pieces, Told } from "./format.ts";
import { shownText } from "./vllm.ts";

const ids = z.array(z.number().int().min(0));
const DEFAULT_MAX_TOKENS = 128;

const requestSchema = z.object({
  rid: z.string().optional(),
  input_ids: ids.min(1),
  sampling_params: z
    .object({
      max_new_tokens: z.number().int().min(1).default(DEFAULT_MAX_TOKENS),
      sampling_seed: z.number().int().nullish(),
      stop: z.union([z.string().transform((text) => [text]), z.array(z.string())]).nullish(),
      stop_token_ids: ids.nullish(),
      skip_special_tokens: z.boolean().nullish(),
      temperature: z.number().min(0).nullish(),
      top_k: z.number().int().nullish(),
    })
    .prefault({}),
  return_logprob: z.boolean().nullish(),
  extra_key: z.string().nullish(),
  stream: z.boolean().nullish(),
});

/** SGLang's own `/generate`. `isOld`: each piece of a stream repeats the ones before. */
export const sglangGenerate =
  (isOld: boolean): Format =>
  (body) => {
    const { sampling_params: sampling, ...request } = requestSchema.parse(body);
    const pairsOf = ({ ids, logprobs }: Pick<NewTokens, "ids" | "logprobs">) => ({
      ...(request.return_logprob && {
        output_token_logprobs: logprobs.map((logprob, index) => [logprob, ids[index], null]),
      }),
    });
    const shownOf = (tokens: NewTokens) => (isOld ? tokens.soFar : tokens);
    const metaOf = (told: Told, tokens: NewTokens | null) => {
      const { sampled } = told;
      return {
        id: request.rid ?? told.requestId,
        finish_reason: finishOf(sampled.finish, sampled.matchedId ?? sampled.ids.at(-1)),
        prompt_tokens: sampled.promptTokens,
        completion_tokens: sampled.ids.length,
        cached_tokens: sampled.cachedTokens,
        weight_version: told.weightVersion,
        weight_versions: sampled.weightSpans,
        ...pairsOf(tokens === null ? sampled : shownOf(tokens)),
        num_running_reqs: told.running,
        num_waiting_reqs: told.waiting,
        queue_time: sampled.queueMs / 1000,
      };
    };
    const pieces: Pieces = {
      piece: (tokens, id, promptIds) => [
        {
          output_ids: shownOf(tokens).ids,
          meta_info: {
            id: request.rid ?? id,
            finish_reason: null,
            prompt_tokens: promptIds.length,
            completion_tokens: tokens.soFar.ids.length,
            ...pairsOf(shownOf(tokens)),
          },
        },
      ],
      last: (tokens, told) => [
        { output_ids: shownOf(tokens).ids, meta_info: metaOf(told, tokens) },
      ],
    };
    return {
      asking: {
        model: null,
        prompt: { ids: request.input_ids },
        seed: sampling.sampling_seed ?? null,
        maxTokens: sampling.max_new_tokens,
        stopTokenIds: sampling.stop_token_ids ?? [],
        stop: sampling.stop ?? [],
        salt: request.extra_key ?? "",
        filters: { temperature: sampling.temperature ?? 1, topK: sampling.top_k ?? -1 },
        logprobsMode: "temperature",
      },
      pieces: request.stream === true ? pieces : undefined,
      write: (told) => ({
        text: shownText(told, sampling.skip_special_tokens !== false),
        output_ids: told.sampled.ids,
        meta_info: metaOf(told, null),
      }),
    };
  };

function finishOf(type: string, matched: number | undefined): object {
  if (type === "stop") return { type, matched };
  return type === "length" ? { type, length: 0 } : { type, message: "aborted" };
}

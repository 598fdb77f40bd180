import { z } from "zod";
import { type Format, type Told, usageOf } from "./format.ts";

const ids = z.array(z.number().int().min(0));

/** What vLLM takes where nothing else is said. */
const DEFAULT_MAX_TOKENS = 16;

export const samplingSchema = z.object({
  max_tokens: z.number().int().min(1).default(DEFAULT_MAX_TOKENS),
  seed: z.number().int().nullish(),
  n: z.literal(1).nullish(),
  stop: z.union([z.string().transform((text) => [text]), z.array(z.string())]).nullish(),
  stop_token_ids: ids.nullish(),
});

export function samplingOf(sampling: z.output<typeof samplingSchema>) {
  return {
    seed: sampling.seed ?? null,
    maxTokens: sampling.max_tokens,
    stopTokenIds: sampling.stop_token_ids ?? [],
    stop: sampling.stop ?? [],
  };
}

const generateSchema = z.object({
  request_id: z.string().optional(),
  model: z.string().nullish(),
  token_ids: ids.min(1),
  sampling_params: samplingSchema.extend({
    logprobs: z.number().int().min(0).nullish(),
    detokenize: z.boolean().default(true),
  }),
  cache_salt: z.string().min(1).max(1024).nullish(),
  priority: z.literal(0).nullish(),
  stream: z.literal(false).nullish(),
});

export const generate: Format = (body) => {
  const { sampling_params: sampling, ...request } = generateSchema.parse(body);
  const wantsText = (sampling.stop?.length ?? 0) > 0;
  if (wantsText && !sampling.detokenize) {
    const message = "stop strings are only supported when detokenize is True";
    throw new z.ZodError([{ code: "custom", path: ["sampling_params"], message, input: body }]);
  }
  return {
    asking: {
      model: request.model ?? null,
      prompt: { ids: request.token_ids },
      salt: request.cache_salt ?? "",
      ...samplingOf(sampling),
    },
    write(told) {
      const { sampled, requestId } = told;
      const content = sampled.logprobs.map((logprob, index) => {
        return { token_id: sampled.ids[index], logprob, rank: 1, top_logprobs: [] };
      });
      const choice = {
        index: 0,
        finish_reason: sampled.finish,
        stop_reason: sampled.matchedId,
        token_ids: sampled.ids,
        logprobs: typeof sampling.logprobs === "number" ? { content } : null,
        weight_versions: sampled.weightSpans,
      };
      return {
        request_id: request.request_id ?? requestId,
        output_mode: "tokens",
        usage: usageOf(told, true),
        choices: [choice],
      };
    },
  };
};

const completionSchema = samplingSchema.extend({
  model: z.string(),
  prompt: ids.min(1, "is not a list of token ids"),
  logprobs: z.number().int().min(0).nullish(),
  return_token_ids: z.boolean().nullish(),
  return_tokens_as_token_ids: z.boolean().nullish(),
  skip_special_tokens: z.boolean().nullish(),
  cache_salt: z.string().nullish(),
  stream: z.literal(false).nullish(),
});

/** `/v1/completions` with a prompt of ids; an old one does not know `return_token_ids`. */
export function completions(isOld: boolean): Format {
  return (body) => {
    const request = completionSchema.parse(body);
    return {
      asking: {
        model: request.model,
        prompt: { ids: request.prompt },
        salt: request.cache_salt ?? "",
        ...samplingOf(request),
      },
      write(told) {
        const { sampled, requestId, model, promptIds } = told;
        const withIds = request.return_token_ids === true && !isOld;
        const choice = {
          index: 0,
          text: shownText(told, request.skip_special_tokens !== false),
          logprobs: typeof request.logprobs === "number" ? tokenLogprobs(told, request) : null,
          finish_reason: sampled.finish,
          stop_reason: sampled.matchedId,
          ...(withIds && { token_ids: sampled.ids, prompt_token_ids: promptIds }),
        };
        return {
          id: `cmpl-${requestId}`,
          object: "text_completion",
          created: Math.floor(Date.now() / 1000),
          model,
          choices: [choice],
          usage: usageOf(told, !isOld),
        };
      },
    };
  };
}

function tokenLogprobs(
  { sampled, tokenizer }: Told,
  { return_tokens_as_token_ids: asIds }: z.output<typeof completionSchema>,
) {
  const tokens = sampled.ids.map((id) => (asIds ? `token_id:${id}` : tokenizer.decode([id])));
  return { text_offset: [], token_logprobs: sampled.logprobs, tokens, top_logprobs: null };
}

export function shownText({ sampled, tokenizer }: Told, skipSpecial: boolean): string {
  const text = tokenizer.decode(sampled.ids);
  return skipSpecial ? text.replace(/<\|[a-z_]+\|>/g, "") : text;
}

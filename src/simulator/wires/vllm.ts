import { z } from "zod";
import type { SimulatedTokenizer } from "../tokenizer.ts";
import { type Format, type NewTokens, type Pieces, type Told, usageOf } from "./format.ts";

const ids = z.array(z.number().int().min(0));

/** What vLLM takes where nothing else is said. */
const DEFAULT_MAX_TOKENS = 16;

const streamFields = {
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
};

export const samplingSchema = z.object({
  max_tokens: z.number().int().min(1).default(DEFAULT_MAX_TOKENS),
  seed: z.number().int().nullish(),
  n: z.literal(1).nullish(),
  stop: z.union([z.string().transform((text) => [text]), z.array(z.string())]).nullish(),
  stop_token_ids: ids.nullish(),
  temperature: z.number().min(0).nullish(),
  top_k: z.number().int().nullish(),
});

export function samplingOf(sampling: z.output<typeof samplingSchema>) {
  return {
    seed: sampling.seed ?? null,
    maxTokens: sampling.max_tokens,
    stopTokenIds: sampling.stop_token_ids ?? [],
    stop: sampling.stop ?? [],
    filters: { temperature: sampling.temperature ?? 1, topK: sampling.top_k ?? -1 },
    logprobsMode: "raw" as const,
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
  ...streamFields,
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
    pieces: request.stream === true ? piecesOf(sampling.logprobs) : undefined,
    nameOf: (requestId) => `generate-tokens-${requestId}`,
    write(told) {
      const { sampled, requestId } = told;
      const content = contentOf(sampled);
      const choice = {
        index: 0,
        finish_reason: sampled.finish,
        stop_reason: sampled.matchedId,
        token_ids: sampled.ids,
        logprobs: typeof sampling.logprobs === "number" ? { content } : null,
        weight_versions: sampled.weightSpans,
      };
      return {
        request_id: `generate-tokens-${request.request_id ?? requestId}`,
        output_mode: "tokens",
        usage: usageOf(told, true),
        choices: [choice],
      };
    },
  };
};

const contentOf = ({ ids, logprobs }: Pick<NewTokens, "ids" | "logprobs">) =>
  logprobs.map((logprob, index) => {
    return { token_id: ids[index], logprob, rank: 1, top_logprobs: [] };
  });

function piecesOf(wanted: number | null | undefined): Pieces {
  const choiceOf = (tokens: NewTokens, finish_reason: string | null) => ({
    index: 0,
    token_ids: tokens.ids,
    logprobs: typeof wanted === "number" ? { content: contentOf(tokens) } : null,
    finish_reason,
  });
  return {
    piece: (tokens, request_id) => [{ request_id, choices: [choiceOf(tokens, null)] }],
    last(tokens, told) {
      const { finish, matchedId, weightSpans } = told.sampled;
      const ended = { stop_reason: matchedId, weight_versions: weightSpans };
      const choice = { ...choiceOf(tokens, finish), ...ended };
      const usage = { choices: [], usage: usageOf(told, true) };
      // An answer that is aborted between two tokens has no last piece.
      return tokens.ids.length > 0 ? [{ choices: [choice] }, usage] : [usage];
    },
  };
}

const completionSchema = samplingSchema.extend({
  model: z.string(),
  prompt: ids.min(1, "is not a list of token ids"),
  logprobs: z.number().int().min(0).nullish(),
  return_token_ids: z.boolean().nullish(),
  return_tokens_as_token_ids: z.boolean().nullish(),
  skip_special_tokens: z.boolean().nullish(),
  cache_salt: z.string().nullish(),
  ...streamFields,
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
      pieces: request.stream === true ? completionPieces(request, isOld) : undefined,
      nameOf: (requestId) => `cmpl-${requestId}-0`,
      write(told) {
        const { sampled, requestId, model, promptIds } = told;
        const withIds = request.return_token_ids === true && !isOld;
        const choice = {
          index: 0,
          text: shownText(told, request.skip_special_tokens !== false),
          logprobs:
            typeof request.logprobs === "number"
              ? tokenLogprobs(sampled, request, told.tokenizer)
              : null,
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

type CompletionRequest = z.output<typeof completionSchema>;

function completionPieces(request: CompletionRequest, isOld: boolean): Pieces {
  const withIds = request.return_token_ids === true && !isOld;
  const choiceOf = (tokens: NewTokens, promptIds: readonly number[]) => ({
    index: 0,
    text: "",
    logprobs: typeof request.logprobs === "number" ? tokenLogprobs(tokens, request, null) : null,
    ...(withIds && { token_ids: tokens.ids }),
    ...(withIds &&
      tokens.soFar.ids.length === tokens.ids.length && { prompt_token_ids: promptIds }),
  });
  return {
    piece: (tokens, id, promptIds) => [
      {
        id: `cmpl-${id}`,
        choices: [{ ...choiceOf(tokens, promptIds), finish_reason: null, stop_reason: null }],
      },
    ],
    last(tokens, told) {
      const { finish, matchedId } = told.sampled;
      const ended = { finish_reason: finish, stop_reason: matchedId };
      const usage = { choices: [], usage: usageOf(told, !isOld) };
      return [{ choices: [{ ...choiceOf(tokens, told.promptIds), ...ended }] }, usage];
    },
  };
}

function tokenLogprobs(
  { ids, logprobs }: Pick<NewTokens, "ids" | "logprobs">,
  { return_tokens_as_token_ids: asIds }: CompletionRequest,
  tokenizer: SimulatedTokenizer | null,
) {
  const tokens = ids.map((id) => (asIds ? `token_id:${id}` : (tokenizer?.decode([id]) ?? "")));
  return { text_offset: [], token_logprobs: logprobs, tokens, top_logprobs: null };
}

export function shownText({ sampled, tokenizer }: Told, skipSpecial: boolean): string {
  const text = tokenizer.decode(sampled.ids);
  return skipSpecial ? text.replace(/<\|[a-z_]+\|>/g, "") : text;
}

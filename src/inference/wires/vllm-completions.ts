import { z } from "zod";
import { type Json, lengthOf, streamedByVllm } from "./streamed.ts";
import { readUsage, samplingParams, usageSchema } from "./vllm.ts";
import { idInText, NOTHING_SAID, readShape, type Wire, type WireRequest } from "./wire.ts";

const list = z.array(z.unknown());

const replySchema = z.object({
  usage: usageSchema,
  choices: z.tuple([
    z.object({
      finish_reason: z.unknown().optional(),
      stop_reason: z.unknown().optional(),
      token_ids: list.nullish(),
      prompt_token_ids: list.nullish(),
      logprobs: z.object({ token_logprobs: list.nullish(), tokens: list.nullish() }).nullish(),
    }),
  ]),
});

/** vLLM's `/v1/completions` with a prompt of ids. */
export const vllmCompletions: Wire = {
  root: "v1",
  path: "/completions",
  body,
  streamed: streamedByVllm(({ choices }) => lengthOf((choices as [Json])[0].token_ids)),
  read(shown, value) {
    const schema = replySchema.refine(({ choices: [{ token_ids }] }) => token_ids, {
      path: ["choices", 0, "token_ids"],
      message: "is missing",
    });
    const reply = readShape(schema, shown, "a completion with token ids", value);
    const [choice] = reply.choices;
    return { ...common(reply), tokenIds: choice.token_ids ?? [] };
  },
};

/**
 * The same with builds that know no `return_token_ids`: ids come as text where the tokens stand,
 * and so only with log-probabilities.
 */
export const vllmCompletionsTextIds: Wire = {
  ...vllmCompletions,
  body: (request) => ({ ...body(request), return_tokens_as_token_ids: true }),
  streamed: streamedByVllm(({ choices }) => {
    const [{ logprobs }] = choices as [{ logprobs?: Json }];
    return lengthOf(logprobs?.tokens);
  }),
  read(shown, value) {
    const schema = replySchema.refine(({ choices: [{ logprobs }] }) => logprobs?.tokens, {
      path: ["choices", 0, "logprobs", "tokens"],
      message: "is missing",
    });
    const reply = readShape(schema, shown, "a completion with token ids", value);
    const ids = reply.choices[0].logprobs?.tokens?.map(idInText) ?? [];
    return { ...common(reply), tokenIds: ids };
  },
};

function body(request: WireRequest) {
  const { model, promptIds, cacheSalt } = request;
  return {
    model,
    prompt: promptIds,
    ...samplingParams(request),
    logprobs: 0,
    return_token_ids: true,
    skip_special_tokens: false,
    ...(cacheSalt !== undefined && { cache_salt: cacheSalt }),
    stream: false,
  };
}

function common({ choices: [choice], usage }: z.output<typeof replySchema>) {
  return {
    ...NOTHING_SAID,
    ...readUsage(usage),
    logprobs: choice.logprobs?.token_logprobs ?? null,
    promptIds: choice.prompt_token_ids ?? null,
    finish: choice.finish_reason,
    matched: choice.stop_reason,
  };
}

import { z } from "zod";
import { ServiceError } from "../errors.ts";
import { checkTokens } from "./check-tokens.ts";
import type { ChatTokens } from "./engine.ts";
import { readUsage, usageSchema } from "./wires/vllm.ts";
import { NOTHING_SAID, readShape } from "./wires/wire.ts";

/** What makes a chat completion of vLLM, and of newer SGLang, come with its ids. */
export const CHAT_IDS = { return_token_ids: true, logprobs: true, top_logprobs: 0 };

const promptIdsSchema = z.array(z.number().int().min(0));

/** SGLang has all ids in the choice, and the sampled ones under a name of its own. */
const replySchema = z.object({
  prompt_token_ids: promptIdsSchema.nullish(),
  usage: usageSchema,
  choices: z.tuple([
    z.object({
      finish_reason: z.unknown().optional(),
      stop_reason: z.unknown().optional(),
      matched_stop: z.unknown().optional(),
      prompt_token_ids: promptIdsSchema.nullish(),
      token_ids: z.array(z.unknown()).nullish(),
      response_token_ids: z.array(z.unknown()).nullish(),
      logprobs: z.object({ content: z.array(z.looseObject({})).nullish() }).nullish(),
    }),
  ]),
});

/**
 * Reads the ids of a chat completion that was asked for with `CHAT_IDS`.
 *
 * @throws ServiceError `engine_bad_reply`, `token_invariant`
 */
export function readChatTokens(shown: string, value: unknown): ChatTokens {
  const reply = readShape(replySchema, shown, "a chat completion with token ids", value);
  const [choice] = reply.choices;
  const promptIds = reply.prompt_token_ids ?? choice.prompt_token_ids;
  const tokenIds = choice.token_ids ?? choice.response_token_ids;
  if (!promptIds || !tokenIds) {
    const missing = promptIds ? "choices.0.token_ids" : "prompt_token_ids";
    const message = `${shown}: not a chat completion with token ids: ${missing} is missing`;
    throw new ServiceError("engine_bad_reply", message);
  }
  const finish = choice.finish_reason === "tool_calls" ? "stop" : choice.finish_reason;
  const raw = {
    ...NOTHING_SAID,
    ...readUsage(reply.usage),
    tokenIds,
    logprobs: choice.logprobs?.content?.map(({ logprob }) => logprob) ?? null,
    finish,
    matched: choice.stop_reason ?? choice.matched_stop,
  };
  const expected = { promptIds, stopTokenIds: [], maxTokens: null, logprobs: true };
  return { ...checkTokens(shown, raw, expected), promptIds };
}

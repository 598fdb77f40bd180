import { type ParsedChat, parseChat, spokenText } from "./chatml.ts";
import { countTurns, type Said, type SimulatedMessage } from "./conversation.ts";
import { nextTurn, type Policy } from "./policy.ts";
import { uniform } from "./random.ts";
import { randomText } from "./random-policy.ts";
import type { SimulatedTokenizer } from "./tokenizer.ts";

/** What is to be answered: messages, or the ids of a prompt with whatever is in them. */
export type Prompt = { ids: readonly number[]; messages: SimulatedMessage[] | null };

export type Answer = {
  /** Null for a prompt that is no conversation. */
  said: Said | null;
  /** As the model would sample them, with its end of turn. */
  ids: number[];
  finish: string;
  delayMs: number;
};

export type Understood = { chat: ParsedChat | null; turn: number | null };

const RAW_ANSWER_TOKENS = 16;

export function understand({ ids, messages }: Prompt, tokenizer: SimulatedTokenizer): Understood {
  const chat = messages ? { messages, begun: "" } : parseChat(tokenizer.decode(ids));
  return { chat, turn: chat && countTurns(chat.messages) };
}

/**
 * What the policy says, in the model's words. A turn that was begun is gone on with, and a prompt
 * that is no conversation is answered with letters.
 *
 * @throws Unscripted
 */
export function answer(
  policy: Policy,
  { chat, turn }: Understood,
  prompt: Prompt,
  seed: number | null,
  tokenizer: SimulatedTokenizer,
): Answer {
  const end = tokenizer.specialId("<|im_end|>");
  if (!chat || turn === null) {
    let hash = 0;
    for (const id of prompt.ids) hash = uniform(hash, id) * 2 ** 32;
    const text = randomText(RAW_ANSWER_TOKENS, hash, seed ?? 0);
    return { said: null, ids: [...tokenizer.encode(text), end], finish: "stop", delayMs: 0 };
  }
  const { said, delayMs } = nextTurn(policy, { messages: chat.messages, seed }, turn);
  const whole = spokenText(said);
  const text = whole.startsWith(chat.begun) ? whole.slice(chat.begun.length) : whole;
  const ids = tokenizer.encode(text);
  const unfinished = said.finishReason === "length" || said.finishReason === "abort";
  if (!unfinished) ids.push(end);
  return { said, ids, finish: unfinished ? said.finishReason : "stop", delayMs };
}

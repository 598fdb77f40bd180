import { ServiceError } from "../../errors.ts";
import type { AssistantMessage, Message } from "../engine.ts";
import { canonicalTurn } from "./canonical-turn.ts";
import { firstDifference } from "./common-prefix.ts";
import { Conversation, type ConversationOptions } from "./conversation.ts";
import type { Span } from "./segment.ts";
import { type Rendering, render } from "./splice.ts";
import { stopsOf, type TokenModel } from "./token-model.ts";
import type { VerifyCase } from "./verify-cases.ts";

/**
 * `equal`: all prompts are what the whole template gives. `forked`: they are, in a new segment where
 * the template rewrote the history. `kept`: the template shows an earlier turn otherwise than it
 * was, and the conversation keeps what the engine saw. `refused`: the template does not take such a
 * conversation. `differs`: anything else.
 */
export type Verdict = "equal" | "forked" | "kept" | "refused" | "differs";

export type Verification = { case: string; verdict: Verdict; calls: number; detail: string | null };

type Call = { prompt: number[]; sampled: string; whole: string; span: Span | undefined };

/** One conversation through the incremental way and through the whole template. */
export function verifyCase(model: TokenModel, given: VerifyCase): Verification {
  const done = (verdict: Verdict, calls: number, detail: string | null) => {
    return { case: given.name, verdict, calls, detail };
  };
  if (needsCalls(given) && model.shape(given.tools, given.variables).shownCall === null) {
    return done("refused", 0, "the template does not show tool calls");
  }
  try {
    const now = new Date(0);
    const { calls, conversation } = walk(model, given, { tools: given.tools, now });
    const wrong = calls.findIndex((call) => !sameIds(model, call));
    if (wrong >= 0) {
      const call = calls[wrong] as Call;
      const why = explain(model, given, calls, wrong);
      if (why !== null) return done("kept", calls.length, why);
      const was = model.tokenizer.decode(call.prompt);
      return done("differs", calls.length, `call ${wrong}: ${firstDifference(call.whole, was)}`);
    }
    const forks = conversation.segments.flatMap(({ fork }) => (fork ? [fork] : []));
    if (forks.length === 0) return done("equal", calls.length, null);
    return done("forked", calls.length, forks.map(({ detail }) => detail).join("; "));
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== "template_refused") throw error;
    return done("refused", 0, error.message);
  }
}

function needsCalls({ messages }: VerifyCase): boolean {
  return messages.some((message) => message.role === "tool");
}

function walk(model: TokenModel, given: VerifyCase, options: ConversationOptions) {
  const { messages, tools, variables } = given;
  const { form, endOfTurn } = model.shape(tools, variables);
  const now = options.now ?? new Date();
  const rendering: Rendering = { template: model.template, form, tools, variables, now };
  const stops = stopsOf(model);
  const turns = turnsOf(messages);
  const conversation = new Conversation(model, turns[0]?.before ?? messages, {
    ...options,
    variables,
  });
  const calls: Call[] = [];
  const call = (before: Message[], sampled: string) => {
    const prompt = [...conversation.prompt()];
    const span = conversation.segments.at(-1)?.spans.at(-1);
    calls.push({ prompt, sampled, span, whole: render(rendering, before, true) });
  };
  for (const { before, assistant, after } of turns) {
    let text = canonicalTurn(rendering, { endOfTurn, stops }, before, assistant, after);
    const end = form.lastEnd?.sampled ?? endOfTurn;
    if (given.truncated === before.length && end) text = text.replace(end, "");
    call(before, text);
    conversation.sampled(model.tokenizer.encode(text), assistant);
    conversation.add(...after);
  }
  if (messages.at(-1)?.role !== "assistant") call(messages, "");
  return { calls, conversation };
}

function turnsOf(messages: Message[]) {
  return messages.flatMap((assistant, index) => {
    if (assistant.role !== "assistant") return [];
    const rest = messages.slice(index + 1);
    const next = rest.findIndex(({ role }) => role === "assistant");
    const after = next < 0 ? rest : rest.slice(0, next);
    return [{ before: messages.slice(0, index), assistant: assistant as AssistantMessage, after }];
  });
}

function sameIds(model: TokenModel, { prompt, whole }: Call): boolean {
  const ids = model.tokenizer.encode(whole);
  return ids.length === prompt.length && ids.every((id, index) => id === prompt[index]);
}

/**
 * Why no prompt that extends the earlier ones could be what the template gives here; null when there
 * is no reason. What was appended must be the same when the whole history is rendered for it.
 */
function explain(
  model: TokenModel,
  given: VerifyCase,
  calls: Call[],
  wrong: number,
): string | null {
  const now = new Date(0);
  const options = { tools: given.tools, now, wholeContext: "always" } as const;
  const reference = walk(model, given, options).calls;
  if (calls.some(({ prompt }, index) => !Bun.deepEquals(prompt, reference[index]?.prompt))) {
    return null;
  }
  const { prompt, whole } = calls[wrong] as Call;
  if (model.tokenizer.decode(prompt) === whole) {
    return "the same text, in which the template's rendering joins tokens across a turn's border";
  }
  for (const [index, earlier] of calls.slice(0, wrong).entries()) {
    const seen = earlier.whole + earlier.sampled;
    if (!whole.startsWith(seen)) return `call ${index} is ${firstDifference(seen, whole)}`;
  }
  return null;
}

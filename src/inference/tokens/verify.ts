import { ServiceError } from "../../errors.ts";
import type { AssistantMessage, Message } from "../engine.ts";
import { canonicalTurn } from "./canonical-turn.ts";
import { firstDifference } from "./common-prefix.ts";
import { Conversation } from "./conversation.ts";
import type { Fork, Span } from "./segment.ts";
import { type Rendering, render } from "./splice.ts";
import { stopsOf, type TokenModel } from "./token-model.ts";
import type { Piece } from "./tokenizer.ts";
import type { VerifyCase } from "./verify-cases.ts";

/**
 * `equal`: all prompts are what the whole template gives. `forked`: they are, in a new segment where
 * the template rewrote the history. `sampled`: they are but for turns of the model's that stay as it sampled them.
 * `refused`: the template does not take such a conversation. `differs`: anything else.
 */
export type Verdict = "equal" | "forked" | "sampled" | "refused" | "differs";

export type Verification = { case: string; verdict: Verdict; calls: number; detail: string | null };

/** One call of a conversation that was played. */
export type PlayedCall = {
  messages: Message[];
  prompt: number[];
  spans: Span[];
  /** Of the segment that the call is in. */
  fork: Fork | null;
};

/** What the whole template gives for a call's messages, wherever it is rendered. */
export type Whole = { text: string; ids: number[] };

/** One conversation through the incremental way and through the whole template. */
export function verifyCase(model: TokenModel, given: VerifyCase): Verification {
  const done = (verdict: Verdict, calls: number, detail: string | null) => {
    return { case: given.name, verdict, calls, detail };
  };
  try {
    const calls = [...playCase(model, given)];
    const judged = calls.map((call) => judge(model, call, wholeOf(model, given, call)));
    const wrong = judged.findIndex((one) => one?.startsWith(DIFFERS));
    if (wrong >= 0) return done("differs", calls.length, `call ${wrong}: ${judged[wrong]}`);
    const forks = new Set(calls.flatMap(({ fork }) => (fork ? [fork.detail] : [])));
    if (forks.size > 0) return done("forked", calls.length, [...forks].join("; "));
    const kept = judged.find((one) => one !== null) ?? null;
    return done(kept === null ? "equal" : "sampled", calls.length, kept);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== "template_refused") throw error;
    return done("refused", 0, error.message);
  }
}

/** @throws ServiceError `template_refused` */
export function* playCase(model: TokenModel, given: VerifyCase): Generator<PlayedCall> {
  const { messages, tools, variables, styles = [] } = given;
  const { form, endOfTurn } = model.shape(tools, variables);
  const now = new Date(0);
  const rendering: Rendering = { template: model.template, form, tools, variables, now };
  const stops = stopsOf(model);
  const turns = turnsOf(messages);
  const opening = turns[0]?.before ?? messages;
  const conversation = new Conversation(model, opening, { tools, variables, now });
  const call = (before: Message[]): PlayedCall => {
    const prompt = [...conversation.prompt()];
    const segment = conversation.segments.at(-1);
    const spans = (segment?.spans ?? []).map((span) => ({ ...span }));
    return { messages: before, prompt, spans, fork: segment?.fork ?? null };
  };
  for (const [turn, { before, assistant, after }] of turns.entries()) {
    yield call(before);
    let text = canonicalTurn(rendering, { endOfTurn, stops }, before, assistant, after);
    const end = form.lastEnd?.sampled ?? endOfTurn;
    if (given.truncated === before.length && end) text = text.replace(end, "");
    const pieces = styles[turn]?.(text) ?? [text];
    conversation.sampled(
      pieces.flatMap((piece) => model.tokenizer.encode(piece)),
      assistant,
    );
    conversation.add(...after);
  }
  if (messages.at(-1)?.role !== "assistant") yield call(messages);
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

function wholeOf(model: TokenModel, { tools, variables }: VerifyCase, call: PlayedCall): Whole {
  const { form } = model.shape(tools, variables);
  const rendering = { template: model.template, form, tools, variables, now: new Date(0) };
  const text = render(rendering, call.messages, true);
  return { text, ids: model.tokenizer.encode(text) };
}

const DIFFERS = "differs ";

/**
 * Null where a prompt is what the whole template gives; why not where it is but for what the model sampled, which stays
 * as it is; else where it differs, which begins with `differs`.
 */
export function judge(model: TokenModel, call: PlayedCall, whole: Whole): string | null {
  const { prompt, spans, fork } = call;
  if (sameIds(prompt, whole.ids)) return null;
  const { tokenizer } = model;
  const shown = tokenizer.decode(prompt);
  // As its tokenizer writes it, which may compose characters.
  const wanted = tokenizer.decode(whole.ids);
  const kept = spans.map((span) => ({ ...span, text: textOf(model, prompt, span) }));
  if (shown === wanted) {
    const other = new Map(placed(tokenizer.pieces(whole.ids)).map((piece) => [piece.at, piece]));
    const isSampled = ({ start, end }: Piece) =>
      start < (fork?.common ?? 0) ||
      kept.some((span) => span.mask && span.start < end && start < span.end);
    const wrong = placed(tokenizer.pieces(prompt)).find((piece) => {
      const same = other.get(piece.at);
      if (same?.text !== piece.text) return !isSampled(piece);
      return !isSampled(piece) && !sameIds(idsOf(prompt, piece), idsOf(whole.ids, same));
    });
    if (!wrong) return "the same text, in other tokens that the model sampled";
    return `${DIFFERS}in the tokens of ${JSON.stringify(wrong.text)}`;
  }
  let at = 0;
  for (const [index, span] of kept.entries()) {
    if (span.mask) continue;
    const isLast = index === kept.length - 1;
    const found =
      index === 0 ? 0 : isLast ? wanted.length - span.text.length : wanted.indexOf(span.text, at);
    if (found < at || !wanted.startsWith(span.text, found)) {
      return `${DIFFERS}${firstDifference(wanted, shown)}`;
    }
    const turn = kept[index - 1];
    const lost = turn?.mask ? lostFrom(wanted.slice(at, found), turn.text, call) : null;
    if (lost !== null) return `${DIFFERS}in what was sampled: ${lost} is not shown`;
    at = found + span.text.length;
  }
  return `what was sampled stays: ${firstDifference(wanted, shown)}`;
}

/** A part of a turn that the model wrote and the template leaves out. */
function lostFrom(shown: string, sampled: string, { messages }: PlayedCall): string | null {
  const said = messages.flatMap((message) => (message.role === "assistant" ? [message] : []));
  const parts = said.flatMap((one) => [one.reasoning_content?.trim() ?? "", one.content.trim()]);
  return (
    parts.find((part) => part !== "" && sampled.includes(part) && !shown.includes(part)) ?? null
  );
}

/** Each piece with the place of its text. */
function placed(pieces: Piece[]): (Piece & { at: number })[] {
  let next = 0;
  return pieces.map((piece) => {
    const at = next;
    next += piece.text.length;
    return { ...piece, at };
  });
}

function textOf({ tokenizer }: TokenModel, prompt: number[], { start, end }: Span): string {
  return tokenizer.decode(prompt.slice(start, end));
}

function idsOf(ids: number[], { start, end }: Piece): number[] {
  return ids.slice(start, end);
}

function sameIds(a: number[], b: number[]): boolean {
  return a.length === b.length && a.every((id, index) => id === b[index]);
}

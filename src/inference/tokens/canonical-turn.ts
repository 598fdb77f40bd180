import type { AssistantMessage, Message } from "../engine.ts";
import { type Rendering, render, spliceAfter } from "./splice.ts";

/** What may end a turn: behind a text as the template has it, and behind whatever else the model stops at. */
export type TurnEnds = { endOfTurn: string | null; stops: readonly string[] };

/**
 * What an engine would sample for a turn if the model wrote exactly as the template shows it: the
 * text behind the generation prompt, up to and with the token that ends the turn.
 *
 * @throws ServiceError `template_refused`
 */
export function canonicalTurn(
  rendering: Rendering,
  { endOfTurn, stops }: TurnEnds,
  before: readonly Message[],
  assistant: AssistantMessage,
  after: readonly Message[],
): string {
  const prompt = render(rendering, before, true);
  const closed = render(rendering, [...before, assistant], false);
  const text = closed.startsWith(prompt)
    ? closed.slice(prompt.length)
    : thought(assistant) + closed.slice(sharedLength(prompt, closed));
  if (endOfTurn === null) return text + opener(rendering, before, assistant, after);
  const sampledEnd = rendering.form.lastEnd?.sampled ?? endOfTurn;
  const ends = [endOfTurn, ...stops].map((end) => ({ end, at: text.lastIndexOf(end) }));
  const last = ends.reduce((a, b) => (b.at > a.at ? b : a));
  if (last.at < 0) return text + sampledEnd;
  return text.slice(0, last.at) + (last.end === endOfTurn ? sampledEnd : last.end);
}

/** The prompt opens reasoning that the template does not show again. */
function thought({ reasoning_content }: AssistantMessage): string {
  return reasoning_content ? `${reasoning_content}\n</think>\n\n` : "";
}

function sharedLength(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at;
}

/** Where nothing ends a turn, the model ends it with the token that opens the next one. */
function opener(
  rendering: Rendering,
  before: readonly Message[],
  assistant: AssistantMessage,
  after: readonly Message[],
): string {
  if (after.length === 0) return "";
  const next = spliceAfter(rendering, before, assistant, after)?.next ?? "";
  return /^<\|[^|]*\|>/.exec(next)?.[0] ?? "";
}

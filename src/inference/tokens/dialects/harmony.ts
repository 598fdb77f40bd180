import type { ToolSchema } from "../../engine.ts";
import { type FoundCall, type ParsedText, parsedText } from "./dialect.ts";
import { callOfArguments } from "./json-call.ts";
import type { MarkedText } from "./marked-text.ts";

const CHANNEL = "<|channel|>";
const MESSAGE = "<|message|>";
const START = "<|start|>";
/** Ends one of a turn's messages, and so no turn. */
export const END_OF_MESSAGE = "<|end|>";
/** What a turn ends with: behind an answer, and behind a call. */
export const HARMONY_ENDS = ["<|return|>", "<|call|>"];
const ENDS = [END_OF_MESSAGE, ...HARMONY_ENDS, START];
const RECIPIENT = /\bto=(?:functions\.)?([\w.-]+)/;

/**
 * Harmony (gpt-oss): a turn is a series of messages, each with a channel: `analysis` is reasoning, `final` the
 * answer, and a message `to=functions.f` a call. The end of the last one may be left out, as it is the token
 * that ended the turn.
 */
export function parseHarmony(
  source: MarkedText,
  tools: readonly ToolSchema[],
): ParsedText & { reasoning: string | null } {
  const { text } = source;
  const found: FoundCall[] = [];
  const reasoning: string[] = [];
  const answer: string[] = [];
  let at = 0;
  while (at < text.length) {
    const head = source.indexOf(MESSAGE, at);
    if (head < 0) break;
    const body = head + MESSAGE.length;
    const { end, after } = endOf(source, body);
    const header = text.slice(at, head);
    const content = text.slice(body, end);
    const name = RECIPIENT.exec(header)?.[1];
    const channel = /^\s*(\w+)/.exec(
      header.slice(header.lastIndexOf(CHANNEL) + CHANNEL.length),
    )?.[1];
    if (name !== undefined) {
      const call = callOfArguments(name, content.trim() || "{}");
      found.push({ ...call, id: null, raw: text.slice(at, after), start: at, end: after });
    } else if (header.includes(CHANNEL) && channel === "analysis") reasoning.push(content.trim());
    else answer.push(content.trim());
    at = after;
  }
  const { calls } = parsedText(source, 0, found, tools);
  const thought = reasoning.join("\n\n");
  // Without any of its markers it is a plain answer.
  const rest = at === 0 ? text.trim() : answer.join("\n\n");
  return { reasoning: thought === "" ? null : thought, content: rest, calls };
}

/** Where a message ends, and where the next one's header begins. */
function endOf(source: MarkedText, from: number): { end: number; after: number } {
  const ends = ENDS.map((marker) => ({ marker, at: source.indexOf(marker, from) }));
  const [first] = ends.filter(({ at }) => at >= 0).toSorted((a, b) => a.at - b.at);
  if (!first) return { end: source.length, after: source.length };
  return { end: first.at, after: first.at + first.marker.length };
}

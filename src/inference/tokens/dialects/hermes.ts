import { type Dialect, type FoundCall } from "./dialect.ts";
import { callOfJson, jsonEnds } from "./json-call.ts";

const OPEN = "<tool_call>";
const CLOSE = "</tool_call>";

/** Hermes, Qwen2.5 and Qwen3: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`. */
export const hermes: Dialect = (source, from, tools) => {
  const found: FoundCall[] = [];
  const endOfJson = jsonEnds(source.text);
  let start = source.indexOf(OPEN, from);
  while (start >= 0) {
    const body = source.skipSpace(start + OPEN.length);
    const json = source.text[body] === "{" ? endOfJson(body) : -1;
    const close = source.indexOf(CLOSE, Math.max(json, body));
    const next = source.indexOf(OPEN, Math.max(json, body));
    // Another call begins before this one ends: this one has no end.
    const closed = close >= 0 && (next < 0 || close < next);
    const bodyEnd = closed ? close : next < 0 ? source.length : next;
    const end = closed ? close + CLOSE.length : bodyEnd;
    const call = callOfJson(source.text.slice(body, bodyEnd).trim());
    if (!closed) call.status = "unclosed";
    found.push({ ...call, raw: source.text.slice(start, end), start, end });
    start = source.indexOf(OPEN, end);
  }
  return found;
};

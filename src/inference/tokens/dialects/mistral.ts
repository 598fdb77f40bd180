import type { Dialect, FoundCall } from "./dialect.ts";
import { callOfArguments, callOfJson, jsonEnds } from "./json-call.ts";
import type { MarkedText } from "./marked-text.ts";

const OPEN = "[TOOL_CALLS]";
const HEAD = /^\s*([\w.-]+)?(?:\[CALL_ID\]([\w-]+))?(?:\[ARGS\])?\s*/;

/**
 * Mistral: `[TOOL_CALLS][{"name": …, "arguments": {…}, "id": …}]`, and from version 11 of its
 * tokenizer on `[TOOL_CALLS]f[ARGS]{…}`, once for each call.
 */
export const mistral: Dialect = (source, from) => {
  const found: FoundCall[] = [];
  const endOfJson = jsonEnds(source.text);
  let start = source.indexOf(OPEN, from);
  while (start >= 0) {
    const body = source.skipSpace(start + OPEN.length);
    const calls =
      source.text[body] === "["
        ? readList(source, body, endOfJson)
        : [readNamed(source, body, endOfJson)];
    const end = calls.at(-1)?.end ?? source.length;
    for (const [index, call] of calls.entries()) {
      const first = index === 0;
      const raw = first ? source.text.slice(start, call.end) : call.raw;
      found.push({ ...call, raw, start: first ? start : call.start });
    }
    start = source.indexOf(OPEN, end);
  }
  return found;
};

type EndOfJson = (start: number) => number;

function readList(source: MarkedText, start: number, endOfJson: EndOfJson): FoundCall[] {
  const { text } = source;
  const calls: FoundCall[] = [];
  let at = source.skipSpace(start + 1);
  while (text[at] === "{") {
    const json = endOfJson(at);
    const end = json < 0 ? source.length : json;
    const call = callOfJson(text.slice(at, end));
    if (json < 0) call.status = "unclosed";
    const next = source.skipSpace(end);
    const closing = text[next] === "," || text[next] === "]";
    const after = closing ? source.skipSpace(next + 1) : next;
    calls.push({ ...call, raw: text.slice(at, end), start: at, end: after });
    if (text[next] !== ",") {
      if (text[next] !== "]" && call.status === "ok")
        (calls.at(-1) as FoundCall).status = "unclosed";
      return calls;
    }
    at = after;
  }
  if (calls.length > 0) return calls;
  const raw = text.slice(start);
  const call = { status: "malformed", name: null, arguments: raw, id: null, raw } as const;
  return [{ ...call, start, end: source.length }];
}

function readNamed(source: MarkedText, start: number, endOfJson: EndOfJson): FoundCall {
  const { text } = source;
  const [head = "", name = "", id = null] = HEAD.exec(text.slice(start, start + 200)) ?? [];
  const body = start + head.length;
  const json = text[body] === "{" ? endOfJson(body) : -1;
  const next = source.indexOf(OPEN, body);
  const end = json >= 0 ? json : next < 0 ? source.length : next;
  const call = callOfArguments(name, text.slice(body, end));
  if (json < 0) call.status = text[body] === "{" ? "unclosed" : "malformed";
  return { ...call, id, raw: text.slice(start, end), start, end };
}

import { type Dialect, type FoundCall } from "./dialect.ts";
import { callOfJson, endOfJson } from "./json-call.ts";

const TAG = "<|python_tag|>";
const LOOKS_LIKE_CALL = /^\{\s*"(name|type|parameters|arguments|function)"\s*:/;

/**
 * Llama 3: the whole answer is `{"name": …, "parameters": {…}}`, or several with `;` between them,
 * with or without `<|python_tag|>` in front. JSON that only answers a question is no call.
 */
export const llama3Json: Dialect = (source, from, tools) => {
  const found: FoundCall[] = [];
  const begin = source.skipSpace(from);
  const tagged = source.isAt(TAG, begin);
  let at = source.skipSpace(tagged ? begin + TAG.length : begin);
  let start = begin;
  while (LOOKS_LIKE_CALL.test(source.text.slice(at, at + 40))) {
    const json = endOfJson(source.text, at);
    const end = json < 0 ? source.length : json;
    const call = callOfJson(source.text.slice(at, end));
    if (json < 0) call.status = "unclosed";
    found.push({ ...call, raw: source.text.slice(start, end), start, end });
    at = source.skipSpace(end);
    if (source.text[at] === ";") at = source.skipSpace(at + 1);
    start = at;
    const last = found.at(-1);
    if (last) last.end = at;
  }
  if (tagged && found.length === 0) {
    const raw = source.text.slice(begin);
    const call = { status: "malformed", name: null, arguments: raw, id: null, raw } as const;
    found.push({ ...call, start: begin, end: source.length });
  }
  return found;
};

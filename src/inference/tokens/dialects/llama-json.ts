import type { ToolSchema } from "../../engine.ts";
import type { Dialect, FoundCall } from "./dialect.ts";
import { callOfJson, jsonEnds } from "./json-call.ts";
import type { MarkedText } from "./marked-text.ts";

const TAG = "<|python_tag|>";
const LOOKS_LIKE_CALL = /^(?:\[\s*)?\{\s*"(name|type|parameters|arguments|function)"\s*:/;
const MAY_BE_CALLS = /\[?\s*\{\s*"(?:name|type|function)"\s*:/g;

/**
 * Llama 3 and xLAM: the whole answer is `{"name": …, "parameters": {…}}`, or several with `;` between them or in a
 * list, with or without `<|python_tag|>` in front. Behind text only what calls known tools up to the answer's end is a
 * call: JSON that answers a question is none.
 */
export const llama3Json: Dialect = (source, from, tools) => {
  const begin = source.skipSpace(from);
  const tagged = source.isAt(TAG, begin);
  const ends = jsonEnds(source.text);
  const at = source.skipSpace(tagged ? begin + TAG.length : begin);
  const found = readSeries(source, begin, at, ends);
  if (tagged && found.length === 0) {
    const raw = source.text.slice(begin);
    const call = { status: "malformed", name: null, arguments: raw, id: null, raw } as const;
    return [{ ...call, start: begin, end: source.length }];
  }
  return found.length > 0 ? found : callsAtEnd(source, from, tools, ends);
};

type EndOfJson = (start: number) => number;

function readSeries(source: MarkedText, begin: number, from: number, ends: EndOfJson): FoundCall[] {
  const found: FoundCall[] = [];
  let [start, at] = [begin, from];
  const looksLike = () => LOOKS_LIKE_CALL.test(source.text.slice(at, at + 60));
  const isList = source.text[at] === "[" && looksLike();
  if (isList) at = source.skipSpace(at + 1);
  while (looksLike()) {
    const json = ends(at);
    const end = json < 0 ? source.length : json;
    const call = callOfJson(source.text.slice(at, end));
    if (json < 0) call.status = "unclosed";
    at = source.skipSpace(end);
    if (source.text[at] === ";" || (isList && source.text[at] === ",")) {
      at = source.skipSpace(at + 1);
    }
    found.push({ ...call, raw: source.text.slice(start, end), start, end: at });
    start = at;
  }
  const last = found.at(-1);
  if (isList && last) {
    if (source.text[at] === "]") last.end = at + 1;
    else if (last.status === "ok") last.status = at >= source.length ? "unclosed" : "malformed";
  }
  return found;
}

/** As often calls are looked for behind text, each up to its end. */
const MAX_LOOKS = 20;

function callsAtEnd(
  source: MarkedText,
  from: number,
  tools: readonly ToolSchema[],
  ends: EndOfJson,
): FoundCall[] {
  const names = new Set(tools.map((tool) => tool.function.name));
  let looks = 0;
  for (const match of source.text.slice(from).matchAll(MAY_BE_CALLS)) {
    if (++looks > MAX_LOOKS) return [];
    const start = from + match.index;
    const found = readSeries(source, start, start, ends);
    const isLast = source.skipSpace(found.at(-1)?.end ?? 0) >= source.length;
    const isKnown = found.every(({ status, name }) => {
      return (status === "ok" || status === "unclosed") && names.has(name ?? "");
    });
    if (found.length > 0 && isLast && isKnown) return found;
  }
  return [];
}

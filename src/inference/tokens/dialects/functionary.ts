import type { Dialect, FoundCall } from "./dialect.ts";
import { callOfArguments } from "./json-call.ts";

const RECIPIENT = />>>([\w.-]+)\n/g;
const FIRST = /^\s*([\w.-]+)\n/;

/** Functionary 3.2: each part of a turn names whom it is for, `all` or a function: `>>>f\n{…}`. */
export const functionary: Dialect = (source, from, tools) => {
  const text = source.text;
  const parts: { name: string; start: number; body: number }[] = [];
  const first = FIRST.exec(text.slice(from, from + 200));
  // The prompt ends with the first `>>>`.
  const known = new Set(["all", ...tools.map((tool) => tool.function.name)]);
  if (first && known.has(first[1] as string)) {
    parts.push({ name: first[1] as string, start: from, body: from + first[0].length });
  }
  for (const match of text.slice(from).matchAll(RECIPIENT)) {
    const start = from + match.index;
    parts.push({ name: match[1] as string, start, body: start + match[0].length });
  }
  return parts.flatMap(({ name, start, body }, index): FoundCall[] => {
    const end = parts[index + 1]?.start ?? text.length;
    if (name === "all") return [];
    const call = callOfArguments(name, text.slice(body, end).trim());
    const cut = call.status === "invalid_json" && index === parts.length - 1;
    const status = cut ? "unclosed" : call.status;
    return [{ ...call, status, id: null, raw: text.slice(start, end), start, end }];
  });
};

import type { Dialect, FoundCall } from "./dialect.ts";
import { callOfArguments } from "./json-call.ts";
import { bracketed, coverSection } from "./section.ts";

const SECTION = ["<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"] as const;
const CALL = ["<|tool_call_begin|>", "<|tool_call_end|>"] as const;
const ARGUMENTS = "<|tool_call_argument_begin|>";
const ID = /^(?:functions\.)?(.+?)(?::\d+)?$/s;

/** Kimi K2: `<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`. */
export const kimi: Dialect = (source, from) => {
  const found: FoundCall[] = [];
  for (const { start, body, bodyEnd, end, closed } of bracketed(source, from, CALL)) {
    const args = source.indexOf(ARGUMENTS, body);
    const raw = source.text.slice(start, end);
    const head = args < 0 || args > bodyEnd ? bodyEnd : args;
    const id = source.text.slice(body, head).trim();
    const name = ID.exec(id)?.[1] ?? "";
    const text = source.text.slice(Math.min(bodyEnd, head + ARGUMENTS.length), bodyEnd).trim();
    const call = callOfArguments(name, text);
    if (head === bodyEnd) call.status = "malformed";
    if (!closed) call.status = "unclosed";
    found.push({ ...call, id: id === "" ? null : id, raw, start, end });
  }
  return coverSection(source, from, found, SECTION);
};

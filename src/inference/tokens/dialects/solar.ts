import type { Dialect, FoundCall } from "./dialect.ts";
import { callOfArguments } from "./json-call.ts";
import { bracketed, coverSection } from "./section.ts";

const SECTION = ["<|tool_calls|>", "<|calls|>"] as const;
const CALL = ["<|tool_call:begin|>", "<|tool_call:end|>"] as const;
const NAME = "<|tool_call:name|>";
const ARGUMENTS = "<|tool_call:args|>";

/** Solar: `<|tool_call:begin|>id<|tool_call:name|>f<|tool_call:args|>{…}<|tool_call:end|>`. */
export const solar: Dialect = (source, from) => {
  const found: FoundCall[] = [];
  for (const { start, body, bodyEnd, end, closed } of bracketed(source, from, CALL)) {
    const raw = source.text.slice(start, end);
    const name = source.indexOf(NAME, body);
    const args = name < 0 ? -1 : source.indexOf(ARGUMENTS, name);
    if (args < 0 || args > bodyEnd) {
      const status = closed ? "malformed" : "unclosed";
      found.push({ status, name: null, arguments: raw, id: null, raw, start, end });
    } else {
      const given = source.text.slice(args + ARGUMENTS.length, bodyEnd).trim();
      const call = callOfArguments(source.text.slice(name + NAME.length, args).trim(), given);
      const id = source.text.slice(body, name).trim();
      const status = closed ? call.status : "unclosed";
      found.push({ ...call, status, id: id === "" ? null : id, raw, start, end });
    }
  }
  return coverSection(source, from, found, SECTION);
};

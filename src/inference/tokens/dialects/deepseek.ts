import type { Dialect, FoundCall } from "./dialect.ts";
import { callOfArguments } from "./json-call.ts";
import { bracketed, coverSection } from "./section.ts";

const SECTION = ["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"] as const;
const CALL = ["<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"] as const;
const SEPARATOR = "<｜tool▁sep｜>";
const FENCED = /^([^\n]*)\n```(?:json)?\n([\s\S]*?)\n?(?:```)?\s*$/;

/**
 * DeepSeek: within a section, V3 and R1 write `function<sep>f\n` and the arguments in a fence, V3.1
 * writes `f<sep>{…}`.
 */
export const deepseek: Dialect = (source, from) => {
  const found: FoundCall[] = [];
  for (const { start, body, bodyEnd, end, closed } of bracketed(source, from, CALL)) {
    const separator = source.indexOf(SEPARATOR, body);
    const raw = source.text.slice(start, end);
    if (separator < 0 || separator > bodyEnd) {
      const status = closed ? "malformed" : "unclosed";
      const args = source.text.slice(body, bodyEnd);
      found.push({ status, name: null, arguments: args, id: null, raw, start, end });
    } else {
      const left = source.text.slice(body, separator).trim();
      const right = source.text.slice(separator + SEPARATOR.length, bodyEnd);
      const fenced = left === "function" ? FENCED.exec(right) : null;
      const name = fenced?.[1]?.trim() ?? left;
      const call = callOfArguments(name, (fenced?.[2] ?? right).trim());
      if (!closed) call.status = "unclosed";
      found.push({ ...call, id: null, raw, start, end });
    }
  }
  return coverSection(source, from, found, SECTION);
};

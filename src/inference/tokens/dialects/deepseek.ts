import type { Dialect, FoundCall } from "./dialect.ts";
import { callOfArguments } from "./json-call.ts";
import { coverSection } from "./section.ts";

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
  let start = source.indexOf(CALL[0], from);
  while (start >= 0) {
    const body = start + CALL[0].length;
    const close = source.indexOf(CALL[1], body);
    const next = source.indexOf(CALL[0], body);
    const closed = close >= 0 && (next < 0 || close < next);
    const bodyEnd = closed ? close : next < 0 ? source.length : next;
    const end = closed ? close + CALL[1].length : bodyEnd;
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
    start = source.indexOf(CALL[0], end);
  }
  return coverSection(source, from, found, SECTION);
};

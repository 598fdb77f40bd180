import type { ToolSchema } from "../../engine.ts";
import type { CallStatus, Dialect, FoundCall } from "./dialect.ts";
import type { MarkedText } from "./marked-text.ts";
import { coverSection } from "./section.ts";
import { typedArguments } from "./typed-arguments.ts";

/** The tags of a call, as one family writes them. */
function tagsOf(suffix: string) {
  const pair = (name: string) => [`<${name}${suffix}>`, `</${name}${suffix}>`] as const;
  return {
    call: pair("tool_call"),
    key: pair("arg_key"),
    value: pair("arg_value"),
    section: pair("tool_calls"),
    separator: `<tool_sep${suffix}>`,
  };
}

type Tags = ReturnType<typeof tagsOf>;

/** GLM-4.5 and later: `<tool_call>f <arg_key>k</arg_key><arg_value>v</arg_value></tool_call>`. */
export const glm = argumentTags(tagsOf(""));

/** Hunyuan 3 writes the same tags with a suffix, and a section around all calls. */
export const hunyuanV3 = argumentTags(tagsOf(":opensource"));

function argumentTags(tags: Tags): Dialect {
  return (source, from, tools) => {
    const found: FoundCall[] = [];
    let start = source.indexOf(tags.call[0], from);
    while (start >= 0) {
      const call = read(tags, source, start, tools);
      found.push({ ...call, start, raw: source.text.slice(start, call.end) });
      start = source.indexOf(tags.call[0], call.end);
    }
    return coverSection(source, from, found, tags.section);
  };
}

type Read = Omit<FoundCall, "start" | "raw">;

function read(tags: Tags, source: MarkedText, start: number, tools: readonly ToolSchema[]): Read {
  const [open, close] = tags.call;
  const body = start + open.length;
  const nameEnds = [tags.key[0], close, tags.separator].map((tag) => source.indexOf(tag, body));
  let at = Math.min(source.length, ...nameEnds.filter((end) => end >= 0));
  const name = source.text.slice(body, at).trim();
  const written: [string, string][] = [];
  const done = (status: CallStatus, end: number): Read => {
    const args = typedArguments(name, written, tools);
    return { status, name: name === "" ? null : name, arguments: args, id: null, end };
  };
  const broken = (from: number) => done("malformed", endOfBroken(tags, source, from));
  if (source.isAt(tags.separator, at)) at = source.skipSpace(at + tags.separator.length);
  while (source.isAt(tags.key[0], at)) {
    const keyEnd = source.indexOf(tags.key[1], at);
    const value = keyEnd < 0 ? -1 : source.skipSpace(keyEnd + tags.key[1].length);
    if (value < 0 || value >= source.length) return done("unclosed", source.length);
    if (!source.isAt(tags.value[0], value)) return broken(value);
    const valueEnd = source.indexOf(tags.value[1], value);
    if (valueEnd < 0) return done("unclosed", source.length);
    const key = source.text.slice(at + tags.key[0].length, keyEnd).trim();
    written.push([key, source.text.slice(value + tags.value[0].length, valueEnd)]);
    at = source.skipSpace(valueEnd + tags.value[1].length);
  }
  if (at >= source.length) return done("unclosed", source.length);
  if (!source.isAt(close, at)) return broken(at);
  return done(name === "" ? "missing_name" : "ok", at + close.length);
}

function endOfBroken({ call: [, close] }: Tags, source: MarkedText, from: number): number {
  const end = source.indexOf(close, from);
  return end < 0 ? source.length : end + close.length;
}

import type { FoundCall } from "./dialect.ts";
import type { MarkedText } from "./marked-text.ts";

/** What the families open calls with. */
const MARKERS = [
  ..."<tool_call> <tool_calls> <TOOLCALL> [TOOL_CALLS] <|tool_call|> <|tool_calls|> <seed:tool_call>".split(
    " ",
  ),
  ..."<minimax:tool_call> <|tool_call_begin|> <|tool_calls_section_begin|> <|tool_call_start|>".split(
    " ",
  ),
  ..."<｜tool▁calls▁begin｜> <｜tool▁call▁begin｜> <|tool_call> <|START_ACTION|> <|tools_prefix|>".split(
    " ",
  ),
  ..."<|action_start|> <|function_call|> <|tool_call:begin|> <|python_tag|> <|python_start|>".split(
    " ",
  ),
  ..."<start_function_call> <function_calls> <function_call> <｜DSML｜function_calls>".split(" "),
  ..."<｜DSML｜tool_calls> <|tool_call_argument_begin|> <tool_call:opensource>".split(" "),
  ..."<｜DSML｜invoke <|open|>call <function= <invoke <atem:invoke ]<]minimax[>[<invoke".split(" "),
] as const;

/** The markers that are in a text, as a template's is that shows a call. */
export function markersIn(text: string): string[] {
  return MARKERS.filter((marker) => text.includes(marker));
}

/**
 * A call that was begun and that the dialect did not read: the model is told, because it would look like an answer. Text
 * counts where the template writes calls with it; a marker that is one token counts wherever it was sampled.
 */
export function unreadCall(
  source: MarkedText,
  from: number,
  found: readonly FoundCall[],
  shown: readonly string[],
): FoundCall | null {
  let start = -1;
  for (const marker of MARKERS) {
    if (!source.isToken(marker) && !shown.includes(marker)) continue;
    const at = outsideOf(found, source, marker, from);
    if (at >= 0 && (start < 0 || at < start)) start = at;
  }
  if (start < 0) return null;
  const next = found.find((call) => call.start > start);
  const end = next?.start ?? source.length;
  const raw = source.text.slice(start, end);
  return { status: "malformed", name: null, arguments: raw, id: null, raw, start, end };
}

/** Where a marker is that stands in no call. */
function outsideOf(
  found: readonly FoundCall[],
  source: MarkedText,
  marker: string,
  from: number,
): number {
  let at = source.indexOf(marker, from);
  for (const call of found) {
    if (at < 0 || at < call.start) break;
    if (at < call.end) at = source.indexOf(marker, call.end);
  }
  return at;
}

import type { DialectName } from "./dialect.ts";

/** The first that matches wins: special dialects stand before what they contain. */
const SIGNS: [DialectName, RegExp][] = [
  ["harmony", /<\|channel\|>/],
  ["dsml", /<｜DSML｜/],
  ["deepseek", /<｜tool▁call▁begin｜>/],
  ["kimi", /<\|tool_call_begin\|>/],
  ["mistral", /\[TOOL_CALLS\]/],
  ["glm", /<arg_key>/],
  ["qwen3_coder", /<tool_call>\s*<function=/],
  ["openhands", /<function=/],
  ["hermes", /<tool_call>/],
  ["pythonic", /<\|python_start\|>|\[func_name1\(|\[\w+\(\w+=/],
  ["llama3_json", /"name":.{0,80}"parameters":|<\|python_tag\|>/s],
];

/**
 * The dialect in which a template shows a call. Where it shows none, what it tells the model in its
 * text, and then what tokens the vocabulary has for it.
 */
export function chooseDialect(
  shownCall: string | null,
  templateText: string,
  addedTokens: readonly string[],
): DialectName {
  for (const text of [shownCall ?? "", templateText, addedTokens.join(" ")]) {
    const found = SIGNS.find(([, sign]) => sign.test(text));
    if (found) return found[0];
  }
  return "none";
}

import type { AssistantMessage } from "../engine.ts";
import { dumps, ONE_LINE } from "./jinja/json-text.ts";
import { loads } from "./jinja/json-value.ts";
import { reprOf, textOf } from "./jinja/text.ts";
import { Dict, type Value } from "./jinja/values.ts";

/**
 * What of a turn the template leaves out or writes otherwise than the model did, for people; null where it shows all
 * that the model said, if perhaps with other spaces or in another spelling.
 */
export function missingFrom(shown: string, message: AssistantMessage): string | null {
  const { reasoning_content = "", content, tool_calls = [] } = message;
  let at = 0;
  const find = (value: Value): boolean => {
    const places = spellings(value).map((text) => {
      const found = shown.indexOf(text, at);
      return found < 0 ? -1 : found + text.length;
    });
    const [end] = places.filter((place) => place >= 0).toSorted((a, b) => a - b);
    if (end !== undefined) at = end;
    return end !== undefined;
  };
  if (!find(reasoning_content.trim())) return "the template does not show the turn's reasoning";
  if (!find(content.trim())) return "the template does not show the turn's text";
  const from = at;
  for (const { function: call } of tool_calls) {
    at = from;
    if (!find(call.name)) return `the template does not show the call of ${call.name}`;
    for (const leaf of leavesOf(call.arguments)) {
      at = from;
      if (!find(leaf)) return `the template shows the arguments of ${call.name} otherwise`;
    }
  }
  return null;
}

/** In what ways a template may write a value. */
function spellings(value: Value): string[] {
  const text = textOf(value);
  if (typeof value !== "string") {
    return [text, dumps(value, ONE_LINE)];
  }
  const json = dumps(value, ONE_LINE).slice(1, -1);
  const ascii = dumps(value, { ...ONE_LINE, ensureAscii: true }).slice(1, -1);
  return [...new Set([text, text.trim(), json, ascii, reprOf(value).slice(1, -1)])];
}

/** The keys and plain values of a call's arguments; the text where it is no JSON. */
function leavesOf(text: string): Value[] {
  let value: Value;
  try {
    value = loads(text);
  } catch {
    return [text.trim()];
  }
  const leaves: Value[] = [];
  const walk = (item: Value) => {
    if (Array.isArray(item)) item.forEach(walk);
    else if (item instanceof Dict) {
      for (const [key, one] of item.entries()) {
        leaves.push(key);
        walk(one);
      }
    } else leaves.push(item);
  };
  walk(value);
  return leaves;
}

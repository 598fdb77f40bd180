import { isDeeper } from "../lib/is-deeper.ts";
import { isObject } from "../lib/is-object.ts";
import type { Verdict } from "./verdict.ts";

export type ExpectedCall = { name: string; arguments: Record<string, unknown> };

/** Arguments as the model wrote them: JSON text, or what is not. */
export type MadeCall = { name: string; arguments: unknown };

/** Whether the calls are those expected, each as often, in any order, with equal arguments. */
export function gradeToolCalls(
  made: readonly MadeCall[],
  expected: readonly ExpectedCall[],
): Verdict {
  if (made.length === 0 && expected.length > 0) {
    return { reward: 0, rule: "no_tool_call", reason: "No tool was called." };
  }
  const left = made.map(canonicalCall);
  for (const call of expected) {
    const at = left.indexOf(canonicalCall(call));
    if (at < 0) {
      const reason = `No call of ${call.name} has the expected arguments.`;
      return { reward: 0, rule: "tool_call_missing", reason };
    }
    left.splice(at, 1);
  }
  if (left.length > 0) {
    return { reward: 0, rule: "tool_call_surplus", reason: `${left.length} calls are too many.` };
  }
  return { reward: 1, rule: "tool_calls_equal", reason: "The calls are those expected." };
}

/** `<tool_call>{json}</tool_call>` in a message, for engines that leave calls in the text. */
export function callsInText(text: string): MadeCall[] {
  const calls: MadeCall[] = [];
  for (const part of text.split("<tool_call>").slice(1)) {
    const end = part.indexOf("</tool_call>");
    const call = end < 0 ? null : jsonOrNull(part.slice(0, end));
    if (isObject(call)) calls.push({ name: String(call.name), arguments: call.arguments ?? {} });
  }
  return calls;
}

function canonicalCall({ name, arguments: args }: MadeCall): string {
  const value = typeof args === "string" ? jsonOrNull(args) : args;
  return JSON.stringify([name, sorted(value)]);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key])]));
}

function jsonOrNull(text: string): unknown {
  try {
    const value = JSON.parse(text);
    return isDeeper(value) ? null : value;
  } catch {
    return null;
  }
}

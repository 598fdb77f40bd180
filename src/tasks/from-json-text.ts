import { parseExactJson } from "../lib/exact-json.ts";
import { parseWithTools } from "../lib/exact-tools.ts";
import { isDeeper } from "../lib/is-deeper.ts";

/**
 * Merged datasets store nested values as JSON text: text that is a JSON list or object becomes it. What lies deeper
 * within each other than anything may stays the text that it is.
 */
export function fromJsonText(value: unknown): unknown {
  return read(value, JSON.parse);
}

/** The same, with whole numbers as `parseExactJson` reads them. */
export function fromExactJsonText(value: unknown): unknown {
  return read(value, parseExactJson);
}

/** The same for a list of tools, whose schemas stay as they were written. */
export function fromToolsText(value: unknown): unknown {
  const parse = (text: string) => (parseWithTools(`{"tools":${text}}`) as { tools: unknown }).tools;
  return read(value, parse);
}

function read(value: unknown, parse: (text: string) => unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    const parsed = parse(value);
    return isDeeper(parsed) ? value : parsed;
  } catch {
    return value;
  }
}

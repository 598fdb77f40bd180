import { sourceOf } from "../../../lib/exact-json.ts";
import { loads } from "./json-value.ts";
import { Dict, Float, type Value } from "./values.ts";

/** A value of JavaScript as Python has it: whole numbers are ints, what is undefined is left out. */
export function fromJs(value: unknown): Value {
  if (typeof value === "number" && !Number.isSafeInteger(value)) return new Float(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(fromJs);
  const source = sourceOf(value);
  if (source !== undefined) return loads(source);
  const dict = new Dict();
  for (const [key, item] of Object.entries(value)) {
    if (item !== undefined) dict.set(key, fromJs(item));
  }
  return dict;
}

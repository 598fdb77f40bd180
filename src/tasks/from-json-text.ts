/** Merged datasets store nested values as JSON text: text that is a JSON list or object becomes it. */
export function fromJsonText(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

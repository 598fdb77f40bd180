/** A row's `kwargs` of one instruction. */
export type Arguments = Record<string, unknown>;
export type Check = (text: string, args: Arguments) => boolean | Promise<boolean>;

export function related(found: number, relation: unknown, wanted: unknown): boolean {
  return relation === "less than" ? found < number(wanted) : found >= number(wanted);
}

/** Parts between separators. An empty one is allowed at either end only. Null: there is one in between. */
export function separated(text: string, by: string | RegExp): string[] | null {
  const parts = text.split(by).map((part) => part.trim());
  if (parts[0] === "") parts.shift();
  if (parts.at(-1) === "") parts.pop();
  return parts.includes("") ? null : parts;
}

export function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [string(value)];
}

export function string(value: unknown): string {
  return value === undefined || value === null ? "" : String(value);
}

export function number(value: unknown): number {
  return Number(value ?? 1);
}

import { isDeeper } from "../../../lib/is-deeper.ts";
import { dumps, ONE_LINE } from "../jinja/json-text.ts";
import { loads } from "../jinja/json-value.ts";
import { Dict, type Value } from "../jinja/values.ts";
import type { CallStatus, ParsedCall } from "./dialect.ts";

type Parsed = Pick<ParsedCall, "status" | "name" | "arguments" | "id">;

/** A call that is one JSON object with `name`, and `arguments` or `parameters`. */
export function callOfJson(text: string): Parsed {
  const value = parseObject(text);
  if (value === null) {
    return { status: "invalid_json", name: nameIn(text), arguments: text, id: null };
  }
  const { name, id, args: given } = partsOf(value);
  const args = argumentsOf(given);
  const found = {
    arguments: args ?? dumps(value, COMPACT),
    id: typeof id === "string" ? id : null,
  };
  if (typeof name !== "string" || name === "")
    return { ...found, status: "missing_name", name: null };
  return { ...found, status: args === null ? "malformed" : "ok", name };
}

/** In the words of most families, of Cohere's, of those that write OpenAI's object, and of Apertus' `{"f": {…}}`. */
function partsOf(value: Dict): { name: Value; id: Value; args: Value } {
  const inner = value.get("function");
  if (inner instanceof Dict) return partsOf(inner);
  const named = ["name", "tool_name", "function"].find((key) => value.has(key));
  const args = ["arguments", "parameters", "args"].find((key) => value.has(key));
  const id = value.get("id") ?? value.get("tool_call_id");
  const [only] = [...value.entries()];
  if (named === undefined && value.size === 1 && only?.[1] instanceof Dict && args === undefined) {
    return { name: only[0], id: null, args: only[1] };
  }
  const given = args === undefined ? new Dict() : value.get(args);
  return { name: named === undefined ? null : value.get(named), id, args: given ?? new Dict() };
}

/** A call whose name stands outside of its JSON arguments. */
export function callOfArguments(name: string, text: string): Omit<Parsed, "id"> {
  const args = argumentsOf(text);
  let status: CallStatus = "ok";
  if (args === null) status = "invalid_json";
  else if (name === "") status = "missing_name";
  return { status, name: name === "" ? null : name, arguments: args ?? text };
}

/** A value as JSON without spaces; null where it holds a number that JSON can't. */
export function compactJson(value: Value): string | null {
  const text = dumps(value, COMPACT);
  return isJson(text) ? text : null;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const COMPACT = { ...ONE_LINE, itemSeparator: ",", keySeparator: ":" };

/** With its numbers and keys as they were written. Some models write the object once more as a string. */
function argumentsOf(value: Value): string | null {
  const object = typeof value === "string" ? parseObject(value) : value;
  return object instanceof Dict ? compactJson(object) : null;
}

/** Only what every reader of JSON takes, so that no NaN. */
function parseObject(text: string): Dict | null {
  try {
    if (isDeeper(JSON.parse(text))) return null;
    const value = loads(text);
    return value instanceof Dict ? value : null;
  } catch {
    return null;
  }
}

function nameIn(text: string): string | null {
  return /"name"\s*:\s*"([^"\\]+)"/.exec(text)?.[1] ?? null;
}

/**
 * Where the JSON object or list that begins at `start` ends, or -1 where it does not. Brackets in its
 * strings don't count, so it may quote the markers that are around it.
 */
export function endOfJson(text: string, start: number): number {
  let depth = 0;
  let quoted = false;
  for (let at = start; at < text.length; at++) {
    const char = text[at];
    if (quoted) {
      if (char === "\\") at += 1;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return -1;
}

/** So often all of a text may be looked through for the ends of its calls: broken ones begin within each other. */
const LOOKS = 20;

/** `endOfJson` for all calls of one text, in a time that grows with its length only: then nothing ends any more. */
export function jsonEnds(text: string): (start: number) => number {
  let left = LOOKS * text.length;
  return (start) => {
    if (left <= 0) return -1;
    const end = endOfJson(text, start);
    left -= (end < 0 ? text.length : end) - start;
    return end;
  };
}

import { isDeeper } from "../../../lib/is-deeper.ts";
import type { ToolSchema } from "../../engine.ts";
import { loads } from "../jinja/json-value.ts";
import { Dict, type Value } from "../jinja/values.ts";
import { compactJson } from "./json-call.ts";
import { PythonLiteral } from "./python-literal.ts";

type Schema = Record<string, unknown>;

/**
 * Arguments that were written as plain text, as a JSON object: the tool's schema says what is a
 * number, and what is a string stays letter for letter what it is.
 */
export function typedArguments(
  name: string,
  written: readonly (readonly [key: string, text: string])[],
  tools: readonly ToolSchema[],
): string {
  const typed = new Dict();
  for (const [key, text] of written) typed.set(key, typedValueOf(name, key, text, tools));
  return compactJson(typed) ?? "{}";
}

/** One of them. */
export function typedValueOf(
  name: string,
  key: string,
  text: string,
  tools: readonly ToolSchema[],
): Value {
  return typedValue(text, typesOf(propertyOf(parametersOf(name, tools), key)));
}

/** The schema of a tool's parameters. */
export function parametersOf(name: string, tools: readonly ToolSchema[]): Schema | undefined {
  const tool = tools.find((candidate) => candidate.function.name === name);
  return tool?.function.parameters as Schema | undefined;
}

/** The schema of one property, with the definitions that it may refer to. */
export function propertyOf(schema: Schema | undefined, key: string): Schema | undefined {
  const properties = schema?.properties as Record<string, Schema> | undefined;
  const found =
    properties && Object.hasOwn(properties, key) ? properties[key] : schema?.additionalProperties;
  if (typeof found !== "object" || found === null) return undefined;
  return { ...definitionsOf(schema), ...found };
}

export function definitionsOf(schema: Schema | undefined): Schema {
  const { $defs, definitions } = schema ?? {};
  return {
    ...($defs !== undefined && { $defs }),
    ...(definitions !== undefined && { definitions }),
  };
}

/** How deep a schema may refer to others. */
const MAX_DEPTH = 8;

/** What hand-written schemas call JSON's types. */
const PYTHON_NAMES: Record<string, string> = {
  ...{ int: "integer", float: "number", double: "number", bool: "boolean", str: "string" },
  ...{ dict: "object", list: "array", None: "null" },
};

/** Every type that a schema allows; none where it says nothing. */
export function typesOf(schema: Schema | undefined, depth = 0): Set<unknown> {
  if (!schema || depth > MAX_DEPTH) return new Set();
  const variants = [schema.anyOf, schema.oneOf, schema.allOf].flat().filter(isSchema);
  const referred = isSchema(schema.$ref) ? undefined : resolve(schema, schema.$ref);
  const values = [schema.enum, schema.const === undefined ? [] : [schema.const]].flat();
  const given = [schema.type].flat().filter((type) => type !== undefined);
  const own = given.length > 0 || variants.length > 0 || referred ? given : values.map(typeOf);
  const further = [...variants, ...(referred ? [referred] : [])].flatMap((one) => [
    ...typesOf({ ...definitionsOf(schema), ...one }, depth + 1),
  ]);
  const named = own.map((type) => PYTHON_NAMES[String(type)] ?? type);
  return new Set([...named.filter((type) => type !== undefined), ...further]);
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null;
}

function resolve(schema: Schema, reference: unknown): Schema | undefined {
  const path =
    typeof reference === "string" ? /^#\/(\$defs|definitions)\/([^/]+)$/.exec(reference) : null;
  const found = path && (schema[path[1] as string] as Schema | undefined)?.[path[2] as string];
  return isSchema(found) ? found : undefined;
}

function typeOf(value: unknown): string | undefined {
  if (value === null) return "null";
  if (typeof value === "object") return Array.isArray(value) ? "array" : "object";
  return value === undefined ? undefined : typeof value;
}

/**
 * A value that may be of several types is what it reads as, text last. What fits no type stays text,
 * for the tool to refuse.
 */
export function typedValue(text: string, types: Set<unknown>): Value {
  const word = text.trim();
  if (types.has("null") && (word === "null" || word === "None")) return null;
  if (types.has("boolean") && /^(true|false)$/i.test(word)) return word.toLowerCase() === "true";
  if (types.has("number") || types.has("integer")) {
    const number = NUMBER.test(word) ? jsonValue(word.replace(/^\+/, "")) : undefined;
    if (number !== undefined) return number;
  }
  if (types.has("object") || types.has("array")) {
    const value = /^[[{]/.test(word) ? (jsonValue(word) ?? literal(word)) : undefined;
    const isList = Array.isArray(value);
    if (isList && types.has("array")) return value;
    if (value !== undefined && !isList && types.has("object")) return value;
  }
  return text;
}

const NUMBER = /^[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?$|^[+-]?\.\d+(?:[eE][+-]?\d+)?$/;

/** JSON as what it says; undefined where it is none, or too deep. */
export function jsonValue(text: string): Value {
  try {
    const value = JSON.parse(text);
    if (isDeeper(value)) return undefined;
    const read = loads(text);
    return compactJson(read) === null ? undefined : read;
  } catch {
    return undefined;
  }
}

/** A value as Python writes it, as templates do that don't ask for JSON. */
function literal(text: string): Value {
  const reader = new PythonLiteral(text, 0);
  const value = reader.read();
  return reader.at === text.length ? value : undefined;
}

import type { ToolSchema } from "../../engine.ts";

type Property = { type?: unknown; anyOf?: unknown; oneOf?: unknown };

/**
 * Arguments that were written as plain text, as a JSON object: the tool's schema says what is a
 * number, and what is a string stays letter for letter what it is.
 */
export function typedArguments(
  name: string,
  written: readonly (readonly [key: string, text: string])[],
  tools: readonly ToolSchema[],
): string {
  const tool = tools.find((candidate) => candidate.function.name === name);
  const properties = (tool?.function.parameters.properties ?? {}) as Record<string, Property>;
  const typed = written.map(([key, text]) => {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
    return [key, typedValue(text, typesOf(property))];
  });
  return JSON.stringify(Object.fromEntries(typed));
}

function typesOf(property: Property | undefined): Set<unknown> {
  if (!property) return new Set();
  const variants = [property.anyOf, property.oneOf].flat().filter(Boolean) as Property[];
  return new Set([...[property.type].flat(), ...variants.flatMap((one) => [...typesOf(one)])]);
}

/** What fits no type stays text, for the tool to refuse. */
function typedValue(text: string, types: Set<unknown>): unknown {
  if (types.has("string")) return text;
  const word = text.trim();
  if (types.has("null") && (word === "null" || word === "None")) return null;
  if (types.has("boolean") && /^(true|false)$/i.test(word)) return word.toLowerCase() === "true";
  if (
    (types.has("number") || types.has("integer")) &&
    word !== "" &&
    Number.isFinite(Number(word))
  ) {
    return Number(word);
  }
  if (!types.has("object") && !types.has("array")) return text;
  try {
    return JSON.parse(word);
  } catch {
    return text;
  }
}

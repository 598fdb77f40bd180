import { exactJson, keepSource, sourceOf } from "./exact-json.ts";

type Json = Record<string, unknown>;

/** What `JSON.parse` changes: a point or an exponent, long numbers, the place of keys such as "2". */
const CHANGED = /\d[.eE]|\d{16}|"\d+"\s*:/;
const TOKEN = /[{}[\]:,]|"(?:[^"\\]|\\.)*"|[^\s{}[\]:,"]+/gs;
const SCHEMAS = new Set(["parameters", "inputSchema"]);

/**
 * JSON in which the schemas of tools keep the text that they were sent as: templates show it to the model, with its
 * numbers and the order of its keys.
 *
 * @throws SyntaxError
 */
export function parseWithTools(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!text.includes('"tools"') || !CHANGED.test(text)) return value;
  for (const { path, source } of schemasIn(text)) {
    const found = path.reduce<unknown>((at, key) => (at as Json | undefined)?.[key], value);
    if (typeof found === "object" && found !== null && CHANGED.test(source))
      keepSource(found, source);
  }
  return value;
}

/** What `parseWithTools` has read, as JSON again. */
export function jsonWithTools(value: object): string {
  const { tools, responses_create_params: asked } = value as Record<string, Json | undefined>;
  const lists = [tools, asked?.tools].filter(Array.isArray).flat() as (Json | null)[];
  const schemas = lists.flatMap((tool) => [tool, tool?.function as Json | undefined]);
  const isExact = schemas.some((tool) => sourceOf(tool?.parameters) !== undefined);
  return isExact ? exactJson(value) : JSON.stringify(value);
}

type Open = { key: string | number; start: number; isTools: boolean };

/** The schemas of tools within a text that is JSON. */
function schemasIn(text: string): { path: (string | number)[]; source: string }[] {
  const found: { path: (string | number)[]; source: string }[] = [];
  const open: Open[] = [];
  let last = "";
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const inner = open.at(-1);
    if (token === "{" || token === "[") {
      const isTools = inner?.isTools || inner?.key === "tools";
      open.push({ key: token === "[" ? 0 : "", start: index, isTools });
    } else if (token === "}" || token === "]") {
      const { start, isTools } = open.pop() as Open;
      const path = open.map(({ key }) => key);
      if (isTools && token === "}" && SCHEMAS.has(String(path.at(-1)))) {
        found.push({ path, source: text.slice(start, index + 1) });
      }
    } else if (token === ":" && inner) inner.key = JSON.parse(last);
    else if (token === "," && typeof inner?.key === "number") inner.key += 1;
    last = token;
  }
  return found;
}

import { describe, expect, test } from "bun:test";
import { sourceOf } from "../../src/lib/exact-json.ts";
import { jsonWithTools, parseWithTools } from "../../src/lib/exact-tools.ts";

const SCHEMA =
  '{"type": "object", "properties": {"10": {"default": 1.0}, "2": {"minimum": 1e-07}}}';
const TOOL = `{"type": "function", "function": {"name": "f", "parameters": ${SCHEMA}}}`;

function sourceAt(value: unknown, ...path: (string | number)[]): string | undefined {
  return sourceOf(path.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], value));
}

describe("the schemas of tools in a body", () => {
  test.each([
    ["tools", ["instance", "tools", 0, "function", "parameters"]],
    ["tools of NeMo Gym", ["instance", "responses_create_params", "tools", 1, "parameters"]],
  ])("keep the text that they were sent as: %s", (_, path) => {
    const asked = `{"tools": [{}, {"name": "g", "parameters": ${SCHEMA}}]}`;
    const text = `{"instance": {"tools": [${TOOL}], "responses_create_params": ${asked}}}`;
    const body = parseWithTools(text);
    expect(sourceAt(body, ...path)).toBe(SCHEMA);
    expect(body).toEqual(JSON.parse(text));
  });

  test("are that text when the row is stored, and when it is read again", () => {
    const row = parseWithTools(`{"tools": [${TOOL}], "max": 5.0}`) as object;
    const stored = jsonWithTools(row);
    expect(stored).toBe(
      `{"tools":[{"type":"function","function":{"name":"f","parameters":${SCHEMA}}}],"max":5}`,
    );
    const again = parseWithTools(stored) as object;
    expect(sourceAt(again, "tools", 0, "function", "parameters")).toBe(SCHEMA);
  });

  test("are found whatever is around them, and nothing else is kept", () => {
    const odd = `{"a": "\\"tools\\": [{\\"parameters\\": {\\"1\\": 1.0}}]", "parameters": {"1": 1.0}, "tools": [[], {"parameters": ${SCHEMA}, "x": {"inputSchema": {"3": 1e5}}}, "t"]}`;
    const body = parseWithTools(odd);
    expect(sourceAt(body, "parameters")).toBeUndefined();
    expect(sourceAt(body, "tools", 1, "parameters")).toBe(SCHEMA);
    expect(sourceAt(body, "tools", 1, "x", "inputSchema")).toBe('{"3": 1e5}');
  });

  test("cost nothing where JavaScript changes nothing", () => {
    const body = parseWithTools('{"tools": [{"parameters": {"type": "object"}}]}');
    expect(sourceAt(body, "tools", 0, "parameters")).toBeUndefined();
    expect(jsonWithTools(body as object)).toBe(JSON.stringify(body));
  });
});

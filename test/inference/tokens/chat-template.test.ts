import { describe, expect, test } from "bun:test";
import { ChatTemplate } from "../../../src/inference/tokens/chat-template.ts";

function render(text: string, variables: Record<string, unknown> = {}, now = new Date(0)) {
  const template = new ChatTemplate(text, "t.jinja", { eos_token: "</s>" });
  return template.render([], [], { addGenerationPrompt: true, variables, now });
}

const VALUES = {
  yes: true,
  nothing: null,
  list: [1, "it's", 'say "it\'s"', true, null, 2.5, { k: "v\n" }],
  object: { a: 1, b: [] },
  tiny: 0.00001,
  odd: "a\u200b\u00a0\u007f",
};

describe("a chat template", () => {
  /** What Python's Jinja writes for the same. */
  test.each([
    ["{{ yes }}|{{ nothing }}|{{ missing }}|{{ tiny }}", "True|None||1e-05"],
    ["{{ list }}", `[1, "it's", 'say "it\\'s"', True, None, 2.5, {'k': 'v\\n'}]`],
    ["{{ object | string }}", "{'a': 1, 'b': []}"],
    ["{{ 'x' ~ yes ~ nothing ~ object }}", "xTrueNone{'a': 1, 'b': []}"],
    ["{{ [odd] }}", "['a\\u200b\\xa0\\x7f']"],
    ["{% if yes %}{{ 1 + 1 }}{% else %}{{ no }}{% endif %}", "2"],
    ["{% for x in list[:2] %}{{ x }};{% endfor %}", "1;it's;"],
    ["{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(yes) }}{{ m(nothing) }}", "<True><None>"],
    ["{{ list | tojson }}", '[1, "it\'s", "say \\"it\'s\\"", true, null, 2.5, {"k": "v\\n"}]'],
    ["{{ eos_token }}{{ add_generation_prompt }}{{ tools is none }}", "</s>TrueTrue"],
    ["{{ range(3) | list }}{{ range(4, 0, -2) | list }}", "[0, 1, 2][4, 2]"],
  ])("writes %s as Python does", (template, text) => {
    expect(render(template, VALUES)).toBe(text);
  });

  test("tells the conversation's date, not today's", () => {
    const now = new Date(2026, 1, 3, 4, 5);
    expect(render("{{ strftime_now('%d %b %Y, %H:%M %B %%') }}", {}, now)).toBe(
      "03 Feb 2026, 04:05 February %",
    );
  });

  test("that raises an exception is named with its words", () => {
    expect(() => render("{{ raise_exception('roles must alternate') }}")).toThrow(
      "t.jinja: the chat template refuses: roles must alternate",
    );
  });
});

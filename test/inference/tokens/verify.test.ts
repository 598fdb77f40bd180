import { describe, expect, test } from "bun:test";
import { loadTokenModel } from "../../../src/inference/tokens/token-model.ts";
import { type Verdict, verifyCase } from "../../../src/inference/tokens/verify.ts";
import { VERIFY_CASES } from "../../../src/inference/tokens/verify-cases.ts";
import { BASH, type Family, modelFolder, modelOf } from "./models.ts";
import { randomConversation } from "./random-conversation.ts";

const FAMILIES: Family[] = ["qwen3", "mistral_nemo", "deepseek_v3"];

describe.each(FAMILIES)("verifying %s's template", (family) => {
  test("finds no difference that is not explained", async () => {
    const model = await modelOf(family);
    const found = VERIFY_CASES.map((given) => verifyCase(model, given));
    expect(found.filter(({ verdict }) => verdict === "differs" || verdict === "refused")).toEqual(
      [],
    );
  });

  test("finds none in random conversations either", async () => {
    const model = await modelOf(family);
    for (let seed = 1; seed <= 40; seed++) {
      const given = {
        name: `${seed}`,
        tools: [BASH],
        variables: {},
        messages: randomConversation(seed),
      };
      expect(verifyCase(model, given).verdict).not.toBe("differs");
    }
  });
});

describe("verifying", () => {
  test("names what becomes of each of Qwen3's conversations", async () => {
    const model = await modelOf("qwen3");
    const verdicts = VERIFY_CASES.map((given) => [given.name, verifyCase(model, given).verdict]);
    expect(Object.fromEntries(verdicts)).toMatchObject({
      "one question": "equal",
      "two questions": "forked",
      "one tool call": "kept",
      "thinking on: tool calls": "equal",
      "thinking on: two questions": "forked",
      "thinking off: tool calls": "kept",
    } satisfies Record<string, Verdict>);
  });

  test("finds every conversation equal where the template only appends", async () => {
    using folder = await modelFolder(APPENDING);
    const model = await loadTokenModel(folder.path);
    const found = VERIFY_CASES.map((given) => verifyCase(model, given).verdict);
    expect(found).toEqual(VERIFY_CASES.map(() => "equal"));
  });

  test("names a template that says something else at a later turn", async () => {
    using folder = await modelFolder(
      APPENDING.replace("{#- AFTER -#}", "{{ '!' if loop.index > 20 }}"),
    );
    const model = await loadTokenModel(folder.path);
    const long = VERIFY_CASES.find(({ name }) => name === "long chain");
    if (!long) throw new Error("there is no long chain");
    expect(verifyCase(model, long)).toMatchObject({
      verdict: "differs",
      detail: expect.any(String),
    });
  });
});

const APPENDING = `{%- for m in messages -%}
{{- '<|im_start|>' + m.role + '\\n' + m.content -}}
{%- for c in m.tool_calls or [] -%}
{{- '<tool_call>' + c.function.name + ' ' -}}
{{- c.function.arguments if c.function.arguments is string else c.function.arguments | tojson -}}
{{- '</tool_call>' -}}
{%- endfor -%}
{#- AFTER -#}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}`;

/** Alternating as Mistral asks for: every user message is answered before the next. */

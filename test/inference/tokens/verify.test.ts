import { describe, expect, test } from "bun:test";
import { loadTokenModel } from "../../../src/inference/tokens/token-model.ts";
import { judge, type Verdict, verifyCase } from "../../../src/inference/tokens/verify.ts";
import { VERIFY_CASES } from "../../../src/inference/tokens/verify-cases.ts";
import { drawCase } from "../../../src/inference/tokens/verify-draw.ts";
import { type Family, modelFolder, modelOf } from "./models.ts";

/** `scripts/soak` draws more. */
const CONVERSATIONS = Number(process.env.ROLLOUTD_TEST_CONVERSATIONS ?? 6);

const FAMILIES: Family[] = ["qwen3", "mistral_nemo", "deepseek_v3"];

describe.each(FAMILIES)("verifying %s's template", (family) => {
  test("finds no difference that is not explained", async () => {
    const model = await modelOf(family);
    const found = VERIFY_CASES.map((given) => verifyCase(model, given));
    expect(found.filter(({ verdict }) => verdict === "differs")).toEqual([]);
  });

  test("finds none in drawn conversations either, nor a refusal but the template's own", async () => {
    const model = await modelOf(family);
    for (let seed = 1; seed <= CONVERSATIONS; seed++) {
      const { verdict, detail } = verifyCase(model, drawCase(seed));
      const isAsked = detail?.includes("must alternate") ?? false;
      if (verdict === "differs" || (verdict === "refused" && !isAsked)) {
        throw new Error(`seed ${seed}: ${verdict}: ${detail}`);
      }
    }
  });
});

describe("verifying", () => {
  test("names what becomes of each of Qwen3's conversations", async () => {
    const model = await modelOf("qwen3");
    const verdicts = VERIFY_CASES.map((given) => [given.name, verifyCase(model, given).verdict]);
    expect(Object.fromEntries(verdicts)).toMatchObject({
      "one question": "equal",
      "two questions": "sampled",
      "one tool call": "sampled",
      "thinking on: tool calls": "equal",
      "thinking on: two questions": "forked",
      "thinking off: tool calls": "forked",
    } satisfies Record<string, Verdict>);
  });

  test("finds every conversation equal where the template only appends", async () => {
    using folder = await modelFolder(APPENDING);
    const model = await loadTokenModel(folder.path);
    const found = VERIFY_CASES.map((given) => verifyCase(model, given).verdict);
    expect(found).toEqual(VERIFY_CASES.map(() => "equal"));
  });

  test("forks where a template says something else at a later turn", async () => {
    using folder = await modelFolder(
      APPENDING.replace("{#- AFTER -#}", "{{ '!' if loop.index > 20 and not loop.last }}"),
    );
    const model = await loadTokenModel(folder.path);
    const long = VERIFY_CASES.find(({ name }) => name === "long chain");
    if (!long) throw new Error("there is no long chain");
    expect(verifyCase(model, long)).toMatchObject({ verdict: "forked" });
  });

  /** What templates do with what they have shown, each of which was once not seen. */
  test.each([
    ["moves the system message to the last user message", SYSTEM_IN_LAST],
    [
      "drops reasoning at once",
      APPENDING.replace("m.content -}}", "m.content.split('</think>')[-1] -}}"),
    ],
    ["drops earlier reasoning at a tool result", thinking("loop.last")],
    ["drops earlier reasoning at a later user message", thinking("loop.index0 > ns.last_user")],
    [
      "drops the text beside a call",
      APPENDING.replace("m.content -}}", "(m.content if not m.tool_calls else '') -}}"),
    ],
    [
      "opens reasoning in the prompt that it does not show",
      APPENDING.replace("assistant\\n' -}}{%- endif", "assistant\\n<think>\\n' -}}{%- endif"),
    ],
    ["counts the messages at its end", `${APPENDING}{{ messages | length }}`],
    [
      "numbers each message",
      APPENDING.replace("{#- AFTER -#}", "{{ loop.index }}/{{ loop.length }}"),
    ],
    ["shows only the last three messages", APPENDING.replace("in messages", "in messages[-3:]")],
    ["ends a turn only where a user message follows", ENDS_BEFORE_USER],
  ])("finds no silent difference where a template %s", async (_, template) => {
    using folder = await modelFolder(template);
    const model = await loadTokenModel(folder.path);
    for (let seed = 1; seed <= 6; seed++) {
      const found = verifyCase(model, drawCase(seed));
      expect([found.case, found.detail, ["differs", "refused"].includes(found.verdict)]).toEqual([
        found.case,
        found.detail,
        false,
      ]);
    }
  });

  test("names the call and both texts where a prompt differs", async () => {
    const { tokenizer } = await modelOf("qwen3");
    const ids = (text: string) => tokenizer.encode(text);
    const call = {
      messages: [],
      prompt: ids("<|im_start|>user\nHi<|im_end|>\n"),
      spans: [{ kind: "prompt" as const, start: 0, end: 6, mask: 0 as const }],
      fork: null,
    };
    const text = "<|im_start|>user\nHo<|im_end|>\n";
    const model = await modelOf("qwen3");
    expect(judge(model, call, { text, ids: ids(text) })).toBe(
      'differs after "<|im_start|>user\\nH": "o<|im_end|>\\n" became "i<|im_end|>\\n"',
    );
  });
});

const APPENDING = `{%- for m in messages -%}
{{- '<|im_start|>' + m.role + '\\n' + m.content -}}
{%- for c in m.tool_calls or [] -%}
{{- '<tool_call>\\n{"name": "' + c.function.name + '", "arguments": ' -}}
{{- c.function.arguments if c.function.arguments is string else c.function.arguments | tojson -}}
{{- '}\\n</tool_call>' -}}
{%- endfor -%}
{#- AFTER -#}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}`;

/** Like Mistral's: the system message is in the last user message, and only while that is the last of all. */
const SYSTEM_IN_LAST = `{%- set system = messages[0].content if messages[0].role == 'system' else '' -%}
${APPENDING.replace("m.content -}}", "(system + ' ' if loop.last and m.role == 'user' else '') + m.content -}}")}`;

const ENDS_BEFORE_USER = APPENDING.replace(
  "{{- '<|im_end|>\\n' -}}",
  "{%- if loop.last or loop.nextitem.role == 'user' -%}{{- '<|im_end|>\\n' -}}{%- endif -%}",
);

/** Shows reasoning where the condition holds, as Qwen3's and GLM's do. */
function thinking(condition: string): string {
  const last =
    "{%- set ns = namespace(last_user=0) -%}{%- for m in messages -%}{%- if m.role == 'user' -%}{%- set ns.last_user = loop.index0 -%}{%- endif -%}{%- endfor -%}";
  const shown = `{%- if m.reasoning_content and (${condition}) -%}{{- '<think>' + m.reasoning_content + '</think>' -}}{%- endif -%}`;
  return `${last}${APPENDING.replace("+ m.content -}}", `-}}${shown}{{- m.content -}}`)}`;
}

import { describe, expect, test } from "bun:test";
import type { ToolSchema } from "../../../../src/inference/engine.ts";
import { ChatTemplate } from "../../../../src/inference/tokens/chat-template.ts";
import {
  DIALECT_NAMES,
  type DialectName,
} from "../../../../src/inference/tokens/dialects/dialect.ts";
import { MarkedText } from "../../../../src/inference/tokens/dialects/marked-text.ts";
import { findDialect, PROBE_TOOLS } from "../../../../src/inference/tokens/dialects/read-back.ts";
import { parseReply } from "../../../../src/inference/tokens/dialects/reply.ts";
import { probeTemplate } from "../../../../src/inference/tokens/template-shape.ts";
import { loadTokenModel } from "../../../../src/inference/tokens/token-model.ts";
import { failureOf } from "../../../support/failure.ts";
import { modelFolder, modelOf } from "../models.ts";
import { randomOf } from "../simulated-engine.ts";

/** A template whose turns are as ChatML has them, and whose calls are written as `calls` says. */
function chatml(calls: string): string {
  return (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% if m.tool_calls %}" +
    `${calls}{% endif %}<|im_end|>\n{% endfor %}` +
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
  );
}

const each = (call: string) =>
  `{% for c in m.tool_calls %}{% set f = c.function %}${call}{% endfor %}`;
const parameters = (one: string) => `{% for k, v in f.arguments.items() %}${one}{% endfor %}`;
const VALUE = "{{ v if v is string else v | tojson }}";
const PAIRS =
  "{% for c in m.tool_calls %}{{ ', ' if not loop.first }}{{ c.function.name }}(" +
  "{% for k, v in c.function.arguments.items() %}{{ ', ' if not loop.first }}{{ k }}={{ v | tojson }}" +
  "{% endfor %}){% endfor %}";
const LIST = (name: string, args: string) =>
  `[{% for c in m.tool_calls %}{{ ', ' if not loop.first }}{"${name}": "{{ c.function.name }}", ` +
  `"${args}": {{ c.function.arguments | tojson }}}{% endfor %}]`;
const M3 = "]<]minimax[>[";

/** How each family writes calls. */
const FAMILIES: [DialectName, string][] = [
  ["hermes", each("<tool_call>\n{{ f | tojson }}\n</tool_call>\n")],
  ["nemotron", `<TOOLCALL>${LIST("name", "arguments")}</TOOLCALL>`],
  ["tool_calls", `<tool_calls>${LIST("name", "arguments")}</tool_calls>`],
  ["cohere", `<|START_ACTION|>${LIST("tool_name", "parameters")}<|END_ACTION|>`],
  ["granite", `<|tool_call|>${LIST("name", "arguments")}`],
  [
    "apertus",
    "<|tools_prefix|>[{% for c in m.tool_calls %}{{ ', ' if not loop.first }}" +
      '{"{{ c.function.name }}": {{ c.function.arguments | tojson }}}{% endfor %}]<|tools_suffix|>',
  ],
  ["internlm", each("<|action_start|><|plugin|>\n{{ f | tojson }}<|action_end|>")],
  ["function_call", each("<function_call> {{ f | tojson }}\n")],
  [
    "qwen3_coder",
    each(
      `<tool_call>\n<function={{ f.name }}>\n${parameters(`<parameter={{ k }}>\n${VALUE}\n</parameter>\n`)}</function>\n</tool_call>\n`,
    ),
  ],
  [
    "seed_oss",
    each(
      `<seed:tool_call>\n<function={{ f.name }}>\n${parameters(`<parameter={{ k }}>${VALUE}</parameter>\n`)}</function>\n</seed:tool_call>\n`,
    ),
  ],
  [
    "openhands",
    each(
      `<function={{ f.name }}>${parameters(`<parameter={{ k }}>${VALUE}</parameter>`)}</function>`,
    ),
  ],
  [
    "glm",
    each(
      `<tool_call>{{ f.name }}\n${parameters(`<arg_key>{{ k }}</arg_key>\n<arg_value>${VALUE}</arg_value>\n`)}</tool_call>\n`,
    ),
  ],
  [
    "minimax_m2",
    "<minimax:tool_call>\n" +
      each(
        `<invoke name="{{ f.name }}">\n${parameters(`<parameter name="{{ k }}">${VALUE}</parameter>\n`)}</invoke>\n`,
      ) +
      "</minimax:tool_call>",
  ],
  [
    "kimi_k3",
    "<|open|>tools<|sep|>" +
      each(
        `<|open|>call tool="{{ f.name }}" index="1"<|sep|>${parameters(
          `<|open|>argument key="{{ k }}" type="{{ 'string' if v is string else 'other' }}"<|sep|>${VALUE}<|close|>argument<|sep|>`,
        )}<|close|>call<|sep|>`,
      ) +
      "<|close|>tools<|sep|>",
  ],
  [
    "solar",
    each(
      "<|tool_call:begin|>{{ c.id }}<|tool_call:name|>{{ f.name }}<|tool_call:args|>{{ f.arguments | tojson }}<|tool_call:end|>",
    ),
  ],
  [
    "kimi",
    each(
      "<|tool_call_begin|>functions.{{ f.name }}:0<|tool_call_argument_begin|>{{ f.arguments | tojson }}<|tool_call_end|>",
    ),
  ],
  [
    "gemma4",
    each(
      "<|tool_call>call:{{ f.name }}{{ '{' }}" +
        `{% for k, v in f.arguments.items() %}{{ ',' if not loop.first }}{{ k }}:` +
        `{% if v is string %}<|"|>{{ v }}<|"|>{% elif v is mapping %}{{ '{' }}{% for a, b in v.items() %}{{ a }}:<|"|>{{ b }}<|"|>{% endfor %}{{ '}' }}` +
        `{% elif v is iterable %}[{% for a in v %}{{ ',' if not loop.first }}<|"|>{{ a }}<|"|>{% endfor %}]` +
        "{% else %}{{ v | tojson }}{% endif %}{% endfor %}{{ '}' }}<tool_call|>",
    ),
  ],
  [
    "minimax_m3",
    `${M3}<tool_call>\n${each(
      `${M3}<invoke name="{{ f.name }}">${parameters(
        `${M3}<{{ k }}>{% if v is mapping %}{% for a, b in v.items() %}${M3}<{{ a }}>{{ b }}${M3}</{{ a }}>{% endfor %}` +
          `{% elif v is string %}{{ v }}{% elif v is iterable %}{% for a in v %}${M3}<item>{{ a }}${M3}</item>{% endfor %}` +
          `{% else %}{{ v | tojson }}{% endif %}${M3}</{{ k }}>`,
      )}${M3}</invoke>\n`,
    )}${M3}</tool_call>`,
  ],
  ["lfm2", `<|tool_call_start|>[${PAIRS}]<|tool_call_end|>`],
  [
    "olmo3",
    `<function_calls>\n${PAIRS.replace("{{ ', ' if not loop.first }}{{ c", "{{ '\\n' if not loop.first }}{{ c")}\n</function_calls>`,
  ],
  ["pythonic", `[${PAIRS}]`],
  ["llama3_json", each('{"name": "{{ f.name }}", "parameters": {{ f.arguments | tojson }}}\n')],
];

describe("a template's own calls", () => {
  test.each(FAMILIES)(
    "in %s are read back, whatever the model is called",
    async (dialect, calls) => {
      const { tokenizer } = await modelOf("qwen3");
      const template = new ChatTemplate(chatml(calls), "test", {});
      const given = { variables: {}, now: new Date(0) };
      const { addedContents: addedTokens } = tokenizer;
      const { form } = probeTemplate(template, { ...given, tools: PROBE_TOOLS, addedTokens });
      const found = findDialect({ ...given, template, form }, tokenizer, ["<|im_end|>"]);
      expect(found).toMatchObject({ dialect, unread: null, notes: [] });
    },
  );

  test("that show their name in their id only are read, as Kimi's", async () => {
    const call =
      "<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>{{ f.arguments | tojson }}<|tool_call_end|>";
    using dir = await modelFolder(chatml(each(call)));
    expect((await loadTokenModel(dir.path)).dialect).toBe("kimi");
  });

  test("in no known form have the folder refused, and not taken for a model without calls", async () => {
    using dir = await modelFolder(chatml(each("@@{{ f.name }}@@{{ f.arguments | tojson }}@@")));
    const failure = await failureOf(() => loadTokenModel(dir.path));
    expect(failure).toMatchObject({ code: "model_folder_invalid" });
    expect(failure.message).toContain("@@probe_alpha@@");
    expect(failure.mend).toContain("chat.dialect");
  });

  test("whose name is not shown have the folder refused", async () => {
    using dir = await modelFolder(
      chatml(each("<tool_call>{{ f.arguments | tojson }}</tool_call>")),
    );
    expect(await failureOf(() => loadTokenModel(dir.path))).toMatchObject({
      code: "model_folder_invalid",
    });
  });
});

const TOOLS: ToolSchema[] = ["f", "g"].map((name) => ({
  type: "function",
  function: {
    name,
    description: "",
    parameters: { type: "object", properties: { text: { type: "string" } } },
  },
}));

const VALUES = {
  value: [
    "a b",
    'it\'s "so"',
    "two\nlines",
    "naïve 🤖 日本",
    "<b> & </i>",
    "12",
    "true",
    "null",
    '{"a": 1}',
    "x\\\\y",
  ],
  count: [0, -3, 12345678901, 7],
  ratio: [1.5, -0.25, 1e21],
  flag: [true, false],
  list: [["a b", "c"], ["d"]],
  entry: [{ key: "v" }],
};

describe("random calls", () => {
  test.each(FAMILIES)(
    "in %s come back from the template's own rendering",
    async (dialect, calls) => {
      const random = randomOf(11);
      const pick = <T>(values: readonly T[]) => values[Math.floor(random() * values.length)] as T;
      const template = new ChatTemplate(chatml(calls), "test", {});
      for (let round = 0; round < 60; round++) {
        const given = Array.from({ length: 1 + Math.floor(random() * 3) }, () => {
          const names = Object.keys(VALUES) as (keyof typeof VALUES)[];
          const kept = names.filter(() => random() < 0.6);
          const args = Object.fromEntries(kept.map((name) => [name, pick<unknown>(VALUES[name])]));
          return { name: pick(["probe_alpha", "probe_beta"]), args };
        });
        const tool_calls = given.map(({ name, args }) => ({
          ...{ id: "call00000", type: "function" },
          function: { name, arguments: args },
        }));
        const said = { role: "assistant", content: "", tool_calls };
        const whole = template.render([said], PROBE_TOOLS, { addGenerationPrompt: false });
        const text = whole.slice("<|im_start|>assistant\n".length, -"<|im_end|>\n".length);
        const reply = parseReply(MarkedText.ofText(text), {
          ...{ dialect, tools: PROBE_TOOLS, startsInReasoning: false },
        });
        const found = reply.calls.map(({ status, name, arguments: args }) => [
          status,
          name,
          JSON.parse(args),
        ]);
        expect(found).toEqual(given.map(({ name, args }) => ["ok", name, args]));
      }
    },
  );
});

describe("a call that is not read", () => {
  const read = (dialect: DialectName, text: string, markers: string[] = []) =>
    parseReply(MarkedText.ofText(text), {
      dialect,
      tools: TOOLS,
      startsInReasoning: false,
      markers,
    });

  test("is malformed where the template writes calls with its marker", () => {
    const text = 'Let me see. <tool_call>{"name": "f"}</tool_call>';
    const { content, calls } = read("openhands", text, ["<tool_call>"]);
    expect(content).toBe("Let me see.");
    expect(calls).toEqual([
      {
        ...{ status: "malformed", name: null, id: null },
        ...{ arguments: text.slice(12), raw: text.slice(12) },
      },
    ]);
  });

  test("is text where neither template nor vocabulary knows its marker", () => {
    const text = "XML such as <tool_calls> is common.";
    expect(read("openhands", text)).toEqual({ reasoning: null, content: text, calls: [] });
  });

  test("is malformed within reasoning that has no end", () => {
    const text = '<think>So I call <tool_call>{"name": "f", "arguments": {}}</tool_call>';
    const { reasoning, calls } = read("hermes", text, ["<tool_call>"]);
    expect([reasoning, calls.map(({ status }) => status)]).toEqual(["So I call ", ["malformed"]]);
  });
});

describe("any part of a call", () => {
  const BODIES: [DialectName, string][] = [
    ["nemotron", '<TOOLCALL>[{"name": "f", "arguments": {"text": "a"}}]</TOOLCALL>'],
    ["cohere", '<|START_ACTION|>[{"tool_name": "f", "parameters": {"text": "a"}}]<|END_ACTION|>'],
    ["apertus", '<|tools_prefix|>[{"f": {"text": "a"}}]<|tools_suffix|>'],
    [
      "minimax_m2",
      '<minimax:tool_call><invoke name="f"><parameter name="text">a</parameter></invoke></minimax:tool_call>',
    ],
    [
      "minimax_m3",
      `${M3}<tool_call>${M3}<invoke name="f">${M3}<text>a${M3}</text>${M3}</invoke>${M3}</tool_call>`,
    ],
    [
      "kimi_k3",
      '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>argument key="text" type="string"<|sep|>a<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
    ],
    ["gemma4", '<|tool_call>call:f{text:<|"|>a<|"|>}<tool_call|>'],
    [
      "solar",
      '<|tool_call:begin|>1<|tool_call:name|>f<|tool_call:args|>{"text": "a"}<|tool_call:end|>',
    ],
    ["lfm2", '<|tool_call_start|>[f(text="a")]<|tool_call_end|>'],
    ["olmo3", '<function_calls>\nf(text="a")\n</function_calls>'],
    [
      "seed_oss",
      "<seed:tool_call><function=f><parameter=text>a</parameter></function></seed:tool_call>",
    ],
    ["qwen3_coder", "<function=f><parameter=text>a</parameter></function></tool_call>"],
    [
      "hunyuan_v3",
      "<tool_call:opensource>f<tool_sep:opensource><arg_key:opensource>text</arg_key:opensource><arg_value:opensource>a</arg_value:opensource></tool_call:opensource>",
    ],
  ];
  const marker = (body: string) => /^.*?(?=["\s[{]|f<|call:|1<)/s.exec(body)?.[0] ?? body;

  test.each(BODIES)(
    "in %s that begins with its marker is a call, and none is lost",
    (dialect, body) => {
      const whole = parseReply(MarkedText.ofText(body), {
        dialect,
        tools: TOOLS,
        startsInReasoning: false,
      });
      expect(whole.calls.map(({ status, name, arguments: args }) => [status, name, args])).toEqual([
        ["ok", "f", '{"text":"a"}'],
      ]);
      const random = randomOf(7);
      for (let round = 0; round < 300; round++) {
        const at = Math.floor(random() * body.length);
        const cut = body.slice(0, at);
        const mutated = `${cut}${body[Math.floor(random() * body.length)]}${body.slice(at + 1)}`;
        for (const text of [cut, mutated, body + cut, body.repeat(2)]) {
          const source = MarkedText.ofText(text);
          const markers = [marker(body)];
          const { calls } = parseReply(source, {
            dialect,
            tools: TOOLS,
            startsInReasoning: false,
            markers,
          });
          const isWhole = text.startsWith(body);
          if (isWhole) expect(calls.length).toBeGreaterThan(0);
          for (const call of calls) if (call.status === "ok") JSON.parse(call.arguments);
        }
      }
    },
  );

  test.each(DIALECT_NAMES)("in %s takes a time that grows with its length only", (dialect) => {
    const body =
      BODIES.find(([name]) => name === dialect)?.[1] ?? '<tool_call>{"name": "f", "arguments": {';
    const text = body.slice(0, Math.ceil(body.length * 0.6)).repeat(4000);
    const startMs = performance.now();
    parseReply(MarkedText.ofText(text), { dialect, tools: TOOLS, startsInReasoning: false });
    expect(performance.now() - startMs).toBeLessThan(4000);
  });
});

import { describe, expect, test } from "bun:test";
import type { ToolSchema } from "../../../../src/inference/engine.ts";
import type {
  CallStatus,
  DialectName,
  ParsedCall,
} from "../../../../src/inference/tokens/dialects/dialect.ts";
import { MarkedText } from "../../../../src/inference/tokens/dialects/marked-text.ts";
import { parseReply } from "../../../../src/inference/tokens/dialects/reply.ts";
import { randomOf } from "../simulated-engine.ts";

const TOOL: ToolSchema = {
  type: "function",
  function: {
    name: "f",
    description: "",
    parameters: {
      type: "object",
      properties: {
        text: { type: "string" },
        n: { type: "integer" },
        flag: { type: "boolean" },
        list: { type: "array" },
        maybe: { anyOf: [{ type: "number" }, { type: "null" }] },
      },
    },
  },
};

function parse(dialect: DialectName, text: string) {
  const source = MarkedText.ofText(text);
  return parseReply(source, { dialect, tools: [TOOL], startsInReasoning: false });
}

const brief = ({ status, name, arguments: args }: ParsedCall) => [status, name, args];

type Row = [
  dialect: DialectName,
  text: string,
  status: CallStatus,
  name: string | null,
  args: string,
];
const A = '{"n":1}';
/** In which a call is the whole answer. */
const WHOLE = new Set<DialectName>(["llama3_json", "pythonic", "harmony"]);

const DSML = (inner: string) =>
  `<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n${inner}\n</｜DSML｜invoke>\n</｜DSML｜function_calls>`;
const PARAMETER = (name: string, isText: boolean, value: string) =>
  `<｜DSML｜parameter name="${name}" string="${isText}">${value}</｜DSML｜parameter>`;

const ONE_CALL: Row[] = [
  ["dsml", DSML(PARAMETER("n", false, "1")), "ok", "f", A],
  ["dsml", DSML(PARAMETER("text", true, "1")), "ok", "f", '{"text":"1"}'],
  ["dsml", DSML('{"n": 1}'), "ok", "f", A],
  ["dsml", DSML(PARAMETER("n", false, "one")), "invalid_json", "f", '{"n":"one"}'],
  ["dsml", '<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="n" str', "unclosed", "f", "{}"],
  ["dsml", DSML("not a parameter"), "malformed", "f", "{}"],
  ["pythonic", "[f(n=1)]", "ok", "f", A],
  ["pythonic", "<|python_start|>[f(n=1)]<|python_end|>", "ok", "f", A],
  [
    "pythonic",
    `[f(text='it\\'s "x"\\n', list=[1, -2.5, {'a': None}], flag=True)]`,
    "ok",
    "f",
    '{"text":"it\'s \\"x\\"\\n","list":[1,-2.5,{"a":null}],"flag":true}',
  ],
  ["pythonic", "[g(n=1)]", "unknown_tool", "g", A],
  ["pythonic", "[f(n=1", "unclosed", "f", "f(n=1"],
  ["pythonic", '[f(text="cut', "unclosed", "f", 'f(text="cut'],
  ["pythonic", "[f(1)]", "malformed", "f", "f(1)]"],
  ["pythonic", "[f(n=open())]", "malformed", "f", "f(n=open())]"],
  [
    "harmony",
    '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"n": 1}<|call|>',
    "ok",
    "f",
    A,
  ],
  ["harmony", ' to=functions.f<|channel|>commentary<|message|>{"n":1}', "ok", "f", A],
  ["harmony", "<|channel|>commentary to=functions.f<|message|>{n}", "invalid_json", "f", "{n}"],
  ["hermes", '<tool_call>\n{"name": "f", "arguments": {"n": 1}}\n</tool_call>', "ok", "f", A],
  ["hermes", '<tool_call>{"name": "f", "arguments": "{\\"n\\": 1}"}</tool_call>', "ok", "f", A],
  ["hermes", '<tool_call>{"name": "f"}</tool_call>', "ok", "f", "{}"],
  ["hermes", '<tool_call>{"name": "g", "arguments": {"n": 1}}</tool_call>', "unknown_tool", "g", A],
  ["hermes", '<tool_call>{"name": "f", "arguments": {"n": 1}}', "unclosed", "f", A],
  ["hermes", '<tool_call>{"name": "f", "argu', "unclosed", "f", '{"name": "f", "argu'],
  ["hermes", "<tool_call>{'name': 'f'}</tool_call>", "invalid_json", null, "{'name': 'f'}"],
  ["hermes", '<tool_call>{"arguments": {"n": 1}}</tool_call>', "missing_name", null, A],
  [
    "hermes",
    '<tool_call>{"name": "f", "arguments": [1]}</tool_call>',
    "malformed",
    "f",
    '{"name":"f","arguments":[1]}',
  ],
  [
    "hermes",
    '<tool_call>{"name": "f", "arguments": {"text": "</tool_call>"}}</tool_call>',
    "ok",
    "f",
    '{"text":"</tool_call>"}',
  ],

  [
    "qwen3_coder",
    "<tool_call>\n<function=f>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>",
    "ok",
    "f",
    A,
  ],
  [
    "qwen3_coder",
    "<tool_call>\n<function=f>\n<parameter=text>\n1\n</parameter>\n</function>\n</tool_call>",
    "ok",
    "f",
    '{"text":"1"}',
  ],
  [
    "qwen3_coder",
    '<tool_call>\n<function=f>\n<parameter=text>\n\n {"a": 1}\n\n</parameter>\n</function>\n</tool_call>',
    "ok",
    "f",
    '{"text":"\\n {\\"a\\": 1}\\n"}',
  ],
  [
    "qwen3_coder",
    "<tool_call>\n<function=f>\n<parameter=text>\n</function></tool_call>\n</parameter>\n</function>\n</tool_call>",
    "ok",
    "f",
    '{"text":"</function></tool_call>"}',
  ],
  ["qwen3_coder", "<tool_call>\n<function=f>\n</function>\n</tool_call>", "ok", "f", "{}"],
  [
    "qwen3_coder",
    "<tool_call>\n<function=f>\n<parameter=n>\n1\n</parameter>\n</function>",
    "unclosed",
    "f",
    A,
  ],
  ["qwen3_coder", "<tool_call>\n<function=f>\n<parameter=n>\n1", "unclosed", "f", "{}"],
  [
    "qwen3_coder",
    "<tool_call>\n<function=>\n</function>\n</tool_call>",
    "missing_name",
    null,
    "{}",
  ],
  ["qwen3_coder", '<tool_call>\n{"name": "f"}\n</tool_call>', "malformed", null, "{}"],

  [
    "openhands",
    "<function=f>\n<parameter=flag>True</parameter>\n</function>",
    "ok",
    "f",
    '{"flag":true}',
  ],
  [
    "openhands",
    "<function=f><parameter=list>[1, 2]</parameter><parameter=maybe>null</parameter></function>",
    "ok",
    "f",
    '{"list":[1,2],"maybe":null}',
  ],
  [
    "openhands",
    "<function=f>\n<parameter=n>one</parameter>\n</function>",
    "ok",
    "f",
    '{"n":"one"}',
  ],
  ["openhands", "<function=f>\n<parameter=n>1</parameter>\n", "unclosed", "f", A],
  ["openhands", "<function=f>\nn = 1\n</function>", "malformed", "f", "{}"],

  [
    "glm",
    "<tool_call>f\n<arg_key>n</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
    "ok",
    "f",
    A,
  ],
  [
    "glm",
    "<tool_call>f<arg_key>text</arg_key><arg_value>1\n</arg_value></tool_call>",
    "ok",
    "f",
    '{"text":"1\\n"}',
  ],
  ["glm", "<tool_call>f\n</tool_call>", "ok", "f", "{}"],
  ["glm", "<tool_call>f\n<arg_key>n</arg_key>\n<arg_value>1", "unclosed", "f", "{}"],
  ["glm", "<tool_call>f\n<arg_key>n</arg_key>\n1</tool_call>", "malformed", "f", "{}"],
  [
    "glm",
    "<tool_call>\n<arg_key>n</arg_key><arg_value>1</arg_value></tool_call>",
    "missing_name",
    null,
    '{"n":"1"}',
  ],

  ["llama3_json", '{"name": "f", "parameters": {"n": 1}}', "ok", "f", A],
  ["llama3_json", '<|python_tag|>{"name": "f", "parameters": {"n": 1}}', "ok", "f", A],
  [
    "llama3_json",
    '{"name": "f", "parameters": {"n": 1',
    "unclosed",
    "f",
    '{"name": "f", "parameters": {"n": 1',
  ],
  [
    "llama3_json",
    '{"name": "f", "parameters": {n: 1}}',
    "invalid_json",
    "f",
    '{"name": "f", "parameters": {n: 1}}',
  ],
  ["llama3_json", '<|python_tag|>f.call(n="1")', "malformed", null, '<|python_tag|>f.call(n="1")'],

  [
    "deepseek",
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{"n": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "ok",
    "f",
    A,
  ],
  [
    "deepseek",
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"n": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "ok",
    "f",
    A,
  ],
  [
    "deepseek",
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"n": 1',
    "unclosed",
    "f",
    '{"n": 1',
  ],
  [
    "deepseek",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "malformed",
    null,
    "f",
  ],
  [
    "deepseek",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜><｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "missing_name",
    null,
    "{}",
  ],

  [
    "kimi",
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"n": 1}<|tool_call_end|><|tool_calls_section_end|>',
    "ok",
    "f",
    A,
  ],
  [
    "kimi",
    "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{n}<|tool_call_end|>",
    "invalid_json",
    "f",
    "{n}",
  ],
  [
    "kimi",
    '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"n"',
    "unclosed",
    "f",
    '{"n"',
  ],

  [
    "mistral",
    '[TOOL_CALLS][{"name": "f", "arguments": {"n": 1}, "id": "abcdefghi"}]',
    "ok",
    "f",
    A,
  ],
  ["mistral", '[TOOL_CALLS]f[ARGS]{"n": 1}', "ok", "f", A],
  ["mistral", '[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"n": 1}', "ok", "f", A],
  ["mistral", '[TOOL_CALLS][{"name": "f", "arguments": {"n": 1}}', "unclosed", "f", A],
  ["mistral", "[TOOL_CALLS] I will call f", "malformed", "I", "will call f"],
];

describe("tool calls", () => {
  test.each(ONE_CALL)("of %s: %j is %s", (dialect, text, status, name, args) => {
    const { content, calls } = parse(
      dialect,
      `I'll do it.\n${text}`.slice(WHOLE.has(dialect) ? 12 : 0),
    );
    expect(calls.map(brief)).toEqual([[status, name, args]]);
    expect(content).toBe(WHOLE.has(dialect) ? "" : "I'll do it.");
  });

  test.each([
    ["hermes", "", '<tool_call>{"name": "f", "arguments": {"n": 1}}</tool_call>', "\n"],
    [
      "qwen3_coder",
      "",
      "<tool_call><function=f><parameter=n>1</parameter></function></tool_call>",
      "\n",
    ],
    ["openhands", "", "<function=f><parameter=n>1</parameter></function>", "\n"],
    ["glm", "", "<tool_call>f<arg_key>n</arg_key><arg_value>1</arg_value></tool_call>", ""],
    ["llama3_json", "", '{"name": "f", "parameters": {"n": 1}}', "; "],
    ["deepseek", "", '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"n": 1}<｜tool▁call▁end｜>', ""],
    [
      "kimi",
      "",
      '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"n": 1}<|tool_call_end|>',
      "",
    ],
    ["mistral", "", '[TOOL_CALLS]f[ARGS]{"n": 1}', ""],
    ["mistral", "[TOOL_CALLS][", '{"name": "f", "arguments": {"n": 1}}', ", "],
  ] as const)("of %s may be several", (dialect, open, call, between) => {
    const text = open + [call, call, call].join(between) + (open === "" ? "" : "]");
    const { content, calls } = parse(dialect, text);
    expect(calls.map(brief)).toEqual(Array.from({ length: 3 }, () => ["ok", "f", A]));
    expect(content).toBe("");
  });

  test("that begin before the last one ended leave that one unclosed", () => {
    const call = '{"name": "f", "arguments": {"n": 1}}';
    const { calls } = parse("hermes", `<tool_call>${call}\n<tool_call>${call}</tool_call>`);
    expect(calls.map(({ status }) => status)).toEqual(["unclosed", "ok"]);
  });

  test("keep the ids that the model wrote", () => {
    const kimi = "<|tool_call_begin|>functions.f:7<|tool_call_argument_begin|>{}<|tool_call_end|>";
    expect(parse("kimi", kimi).calls[0]?.id).toBe("functions.f:7");
    const mistral = '[TOOL_CALLS][{"name": "f", "arguments": {}, "id": "abcdefghi"}]';
    expect(parse("mistral", mistral).calls[0]?.id).toBe("abcdefghi");
  });

  test("are not read from an answer in JSON", () => {
    const answer = '{"lines": 3, "name": "notes.txt"}';
    expect(parse("llama3_json", answer)).toEqual({ reasoning: null, content: answer, calls: [] });
  });

  test("are not read from reasoning", () => {
    const call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>';
    expect(parse("hermes", `<think>\nPerhaps ${call}?\n</think>\n\nNo.`)).toEqual({
      reasoning: `Perhaps ${call}?`,
      content: "No.",
      calls: [],
    });
    expect(parse("hermes", `<think>\nPerhaps ${call}`)).toMatchObject({ content: "", calls: [] });
    const source = MarkedText.ofText(`Perhaps ${call}\n</think>\n${call}`);
    const options = { dialect: "hermes", tools: [TOOL], startsInReasoning: true } as const;
    expect(parseReply(source, options)).toMatchObject({
      reasoning: `Perhaps ${call}`,
      content: "",
    });
    expect(parseReply(source, options).calls.map(brief)).toEqual([["ok", "f", "{}"]]);
  });

  test("stand between an analysis and an answer, with gpt-oss", () => {
    const text =
      "<|channel|>analysis<|message|>Hm: <|end|><|start|>assistant to=functions.f<|channel|>commentary" +
      '<|message|>{"n": 1}<|call|><|start|>assistant<|channel|>final<|message|>Four.<|return|>';
    const { reasoning, content, calls } = parse("harmony", text);
    expect([reasoning, content, calls.map(brief)]).toEqual(["Hm:", "Four.", [["ok", "f", A]]]);
    expect(parse("harmony", "just text")).toEqual({
      reasoning: null,
      content: "just text",
      calls: [],
    });
  });

  test("are several in one list, with Llama 4, and a list of numbers is none", () => {
    const { calls, content } = parse("pythonic", "[f(n=1), f(flag=False)]");
    expect([calls.map(brief), content]).toEqual([
      [
        ["ok", "f", A],
        ["ok", "f", '{"flag":false}'],
      ],
      "",
    ]);
    expect(parse("pythonic", "[1, 2]")).toEqual({ reasoning: null, content: "[1, 2]", calls: [] });
  });

  test("are found in any rubble in bounded time, and nothing of it is lost", () => {
    const rubble = ONE_CALL.flatMap(([, text]) => text.split(/(?<=[>\]}])|(?=[<[{])/));
    const random = randomOf(3);
    const dialects = [...new Set(ONE_CALL.map(([dialect]) => dialect))];
    for (let round = 0; round < 3000; round++) {
      const parts = Array.from({ length: random() * 12 }, () => {
        return rubble[Math.floor(random() * rubble.length)] ?? "";
      });
      const text = parts.join("");
      const dialect = dialects[round % dialects.length] ?? "none";
      const { calls } = parse(dialect, text);
      for (const { raw } of calls) expect(text).toContain(raw);
      expect(calls.length).toBeLessThanOrEqual(parts.length + 1);
    }
  });
});

/** What a model writes that has lost itself: the beginnings of calls, again and again, none of which ends. */
const BEGINNINGS: [DialectName, string][] = [
  ["hermes", "<tool_call>{"],
  ["mistral", "[TOOL_CALLS]f[ARGS]{"],
  ["openhands", "<function=f><parameter=text>"],
  ["qwen3_coder", "<tool_call><function=f>"],
  ["glm", "<tool_call>f<arg_key>"],
  ["deepseek", "<｜tool▁call▁begin｜>"],
  ["kimi", "<|tool_call_begin|>"],
  ["dsml", "<｜DSML｜invoke"],
  ["openhands", "<function="],
];

test.each(BEGINNINGS)(
  "%s: half a megabyte of broken calls holds nobody up",
  (dialect, beginning) => {
    const text = beginning.repeat(500_000 / beginning.length);
    const startMs = performance.now();
    parse(dialect, text);
    expect(performance.now() - startMs).toBeLessThan(3000);
  },
);

test.each(["hermes", "llama3_json"] as const)(
  "%s: arguments a hundred thousand lists deep are no JSON",
  (dialect) => {
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    const json = `{"name": "f", "parameters": {"list": ${deep}}}`;
    const text = dialect === "hermes" ? `<tool_call>${json}</tool_call>` : json;
    expect(parse(dialect, text).calls).toMatchObject([{ status: "invalid_json", name: "f" }]);
  },
);

import { describe, expect, test } from "bun:test";
import { ServiceError } from "../../src/errors.ts";
import { BACKEND, calls, says } from "../support/fake-engine.ts";
import { PROMPT, setup } from "./setup.ts";

const CONTINUE = /^user: Please continue working on the task\./;

describe("a rollout ends", () => {
  test("with the message of the finish tool, and the record has all that came before", async () => {
    const t = setup({
      script: [calls(["think", { thought: "hm" }]), calls(["finish", { message: "4" }])],
    });
    expect(await t.run()).toEqual({ stopReason: "finish", finalMessage: "4" });
    const turn = {
      backend_id: "b1",
      finish_reason: "tool_calls" as const,
      prompt_tokens: 10,
      completion_tokens: 2,
      started_ms: expect.any(Number),
      engine_ms: 0,
      queue_ms: null,
      first_token_ms: null,
      cached_tokens: null,
      weight_version: null,
      ...{ weight_spans: [], logprobs_mode: null },
      waited_ms: 0,
      lost_tokens: 0,
    };
    expect(t.trajectory()).toEqual({
      version: 1,
      job_id: "job-1",
      attempt: 1,
      token_ids: "absent",
      segments: [],
      tools: t.tools.map((tool) => tool.schema),
      messages: [
        ...PROMPT,
        calls(["think", { thought: "hm" }]).message,
        { role: "tool", content: "noted", tool_call_id: "call_0" },
        calls(["finish", { message: "4" }]).message,
      ],
      turns: [
        {
          ...turn,
          message: 1,
          tools: [{ name: "think", status: "ok", message: 2, duration_ms: expect.any(Number) }],
        },
        {
          ...turn,
          message: 3,
          tools: [{ name: "finish", status: "ok", message: null, duration_ms: expect.any(Number) }],
        },
      ],
      stop_reason: "finish",
    });
  });

  test("at its end, also where a tool's answer was cut within a character", async () => {
    const t = setup({
      script: [calls(["think", {}]), says("Answer: 4")],
      think: async () => ({ text: "🙂".slice(0, 1), ok: true }),
    });
    await t.run();
    expect(t.conversation()[2]).toBe("tool: \ufffd");
  });

  test("at a finish, and tools that the same message asks for behind it do not run", async () => {
    const t = setup({
      script: [calls(["think", { n: 1 }], ["finish", { message: "x" }], ["think", { n: 2 }])],
    });
    expect(await t.run()).toEqual({ stopReason: "finish", finalMessage: "x" });
    expect(t.thoughts).toEqual([{ n: 1 }]);
  });

  test("at the finish of the last part, where a task is given in parts", async () => {
    const parts = ["Now divide.", null];
    const t = setup({
      script: [calls(["finish", { message: "a" }]), calls(["finish", { message: "b" }])],
      onFinish: async () => parts.shift() ?? null,
    });
    expect(await t.run()).toEqual({ stopReason: "finish", finalMessage: "b" });
    expect(t.conversation()).toEqual([
      "user: Go.",
      "assistant: ",
      "tool: Now divide.",
      "assistant: ",
    ]);
    const { turns } = t.trajectory();
    expect(turns.map(({ tools }) => tools[0]?.message)).toEqual([2, null]);
  });

  test("with an answer that calls no tool", async () => {
    const t = setup({ script: [says("Answer: 4")] });
    expect(await t.run()).toEqual({ stopReason: "answer", finalMessage: "Answer: 4" });
    expect(t.trajectory()).toMatchObject({ stop_reason: "answer", turns: [{ message: 1 }] });
  });

  test("after its number of turns, and no earlier", async () => {
    const turns = [1, 2, 3].map((n) => calls(["think", { n }]));
    const t = setup({ script: turns, maxTurns: 3 });
    expect(await t.run()).toEqual({ stopReason: "max_turns", finalMessage: null });
    expect([t.engine.requests.length, t.thoughts.length]).toEqual([3, 3]);
  });

  test("where the engine cut the message, whose tool calls are not run", async () => {
    const cut = calls(["think", {}]);
    cut.message.content = "I was about to";
    const t = setup({ script: [{ ...cut, finishReason: "length" }] });
    expect(await t.run()).toEqual({ stopReason: "length", finalMessage: "I was about to" });
    expect(t.thoughts).toEqual([]);
    expect(t.trajectory()).toMatchObject({
      stop_reason: "length",
      turns: [{ tools: [{ name: "think", status: "truncated", message: null, duration_ms: 0 }] }],
    });
  });

  test("where the engine has no room for the conversation, and keeps what it has", async () => {
    const full = async () => {
      throw new ServiceError("context_exhausted", "too long");
    };
    const t = setup({ script: [calls(["think", {}]), full] });
    expect(await t.run()).toEqual({ stopReason: "context", finalMessage: null });
    expect(t.conversation()).toEqual(["user: Go.", "assistant: ", "tool: noted"]);
    expect(t.trajectory().stop_reason).toBe("context");
  });

  test("when the agent repeats itself", async () => {
    const t = setup({ script: Array(9).fill(calls(["think", { same: true }])) });
    expect(await t.run()).toEqual({ stopReason: "loop", finalMessage: null });
    expect(t.engine.requests.length).toBe(4);
  });
});

describe("a message without a tool call that is no answer", () => {
  test("is followed by a request to go on, which the model sees", async () => {
    const t = setup({ script: [says("Let me see."), says("Answer: 4")] });
    await t.run();
    expect(t.conversation()).toEqual([
      "user: Go.",
      "assistant: Let me see.",
      expect.stringMatching(CONTINUE),
      "assistant: Answer: 4",
    ]);
    expect(t.engine.requests[1]?.messages.length).toBe(3);
  });

  test("ends the rollout when it is one too many in a row, where a limit is set", async () => {
    const script = [says("a"), says("b"), says("c"), says("d")];
    const t = setup({ script, rules: { maxIdleTurns: 3 } });
    expect(await t.run()).toEqual({ stopReason: "loop", finalMessage: "c" });
    expect(t.engine.requests.length).toBe(3);
  });

  test("is no loop where a tool call came between", async () => {
    const script = [says("a"), says("b"), calls(["think", {}]), says("c"), says("d"), says("e")];
    const t = setup({ script, rules: { maxIdleTurns: 3 } });
    expect(await t.run()).toEqual({ stopReason: "loop", finalMessage: "e" });
  });

  test("ends the rollout at the third that says the same, or at the second where that is strict", async () => {
    const script = [says("a"), says("b"), says("b"), says("b"), says("b")];
    const turns = async (stuck: "normal" | "strict" | "off") => {
      const t = setup({ script, maxTurns: 5, rules: { stuck } });
      return [(await t.run()).stopReason, t.engine.requests.length];
    };
    expect(await turns("normal")).toEqual(["loop", 4]);
    expect(await turns("strict")).toEqual(["loop", 3]);
    expect(await turns("off")).toEqual(["max_turns", 5]);
  });

  test("may give up from the second reminder on", async () => {
    const t = setup({ script: [says("a"), says("b"), says("Answer: 4")] });
    await t.run();
    const reminders = t.conversation().filter((line) => CONTINUE.test(line));
    expect(reminders.map((line) => line.includes("give up"))).toEqual([false, true]);
  });
});

describe("a call that can't be carried out is told to the model, which goes on", () => {
  const cases: [what: string, name: string, args: unknown, told: string | RegExp][] = [
    ["an unknown tool", "dig", {}, 'ERROR: there is no tool "dig". The tools are: think, finish.'],
    ["malformed JSON", "think", '{"a": ', /^ERROR: the arguments are not valid JSON: ./],
    ["no arguments at all", "think", "", /^ERROR: the arguments are not valid JSON: ./],
    ["a list", "think", [1], "ERROR: the arguments must be a JSON object."],
    ["null", "think", "null", "ERROR: the arguments must be a JSON object."],
    ["a text", "think", '"hm"', "ERROR: the arguments must be a JSON object."],
    [
      "what lies too deep within each other",
      "think",
      `{"thought": ${"[".repeat(200_000)}${"]".repeat(200_000)}}`,
      "ERROR: the arguments have more than 256 lists and objects within each other.",
    ],
  ];
  test.each(cases)("%s", async (_what, name, args, told) => {
    const t = setup({ script: [calls([name, args]), says("Answer: 4")] });
    expect(await t.run()).toMatchObject({ stopReason: "answer" });
    expect(t.thoughts).toEqual([]);
    const { messages, turns } = t.trajectory();
    const content = typeof told === "string" ? told : expect.stringMatching(told);
    expect(messages[2]).toEqual({ role: "tool", content, tool_call_id: "call_0" });
    expect(turns[0]?.tools).toEqual([
      {
        name,
        status: name === "dig" ? "unknown_tool" : "malformed",
        message: 2,
        duration_ms: expect.any(Number),
      },
    ]);
  });

  test("the same malformed call three times over is a loop", async () => {
    const t = setup({ script: Array(5).fill(calls(["think", "{"])) });
    expect(await t.run()).toMatchObject({ stopReason: "loop" });
    expect(t.engine.requests.length).toBe(3);
  });
});

test("each tool of a message is answered under the id of its call, in order", async () => {
  const think = async ({ n }: Record<string, unknown>) => ({ text: `n is ${n}`, ok: n === 1 });
  const script = [calls(["think", { n: 1 }], ["think", { n: 2 }]), says("Answer: 3")];
  const t = setup({ script, think });
  await t.run();
  const { messages, turns } = t.trajectory();
  expect(messages.slice(2, 4)).toEqual([
    { role: "tool", content: "n is 1", tool_call_id: "call_0" },
    { role: "tool", content: "n is 2", tool_call_id: "call_1" },
  ]);
  expect(turns[0]?.tools.map(({ message, status }) => [message, status])).toEqual([
    [2, "ok"],
    [3, "tool_error"],
  ]);
});

test("a tool's outcome, where it names one, tells whether two answers are the same", async () => {
  let n = 0;
  const script = Array.from({ length: 8 }, () => calls(["think", { thought: "again" }]));
  const timed = setup({
    script,
    maxTurns: 8,
    think: async () => ({ text: `at ${n++}`, ok: true }),
  });
  expect(await timed.run()).toMatchObject({ stopReason: "max_turns" });
  const same = async () => ({ text: `at ${n++}`, ok: true, outcome: "exit code 1" });
  expect(await setup({ script, think: same }).run()).toMatchObject({ stopReason: "loop" });
});

test("every call of the model carries the whole conversation, and an id of its own", async () => {
  const t = setup({ script: [calls(["think", {}]), says("Answer: 4")] });
  await t.run();
  const common = {
    tools: t.tools.map((tool) => tool.schema),
    sampling: { temperature: 0.5 },
    timeoutMs: 1234,
    stallMs: 0,
    maxReplyBytes: 5678,
    sessionId: "job-1",
    onPartial: expect.any(Function),
  };
  const { messages, turns } = t.trajectory();
  expect(t.engine.requests).toEqual([
    { ...common, messages: PROMPT, requestId: "job-1.0" },
    { ...common, messages: messages.slice(0, 3), requestId: "job-1.1" },
  ]);
  expect(turns.map((turn) => turn.backend_id)).toEqual([BACKEND.id, BACKEND.id]);
});

test("a model with no turn left is not asked to go on", async () => {
  const t = setup({ script: [says("hm")], maxTurns: 1 });
  await t.run();
  expect(t.conversation().at(-1)).toBe("assistant: hm");
});

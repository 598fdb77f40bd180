import { describe, expect, test } from "bun:test";
import { runAgent } from "../../src/agent/loop.ts";
import { DEFAULT_RULES } from "../../src/agent/rules.ts";
import { TokenDialogue } from "../../src/agent/token-dialogue.ts";
import { type Tool, toolSchema } from "../../src/agent/tool.ts";
import type { Backend, Message, Sampling } from "../../src/inference/engine.ts";
import { probeBackend } from "../../src/inference/probe.ts";
import { tokenEngine } from "../../src/inference/token-engine.ts";
import type { TemplateMessage } from "../../src/inference/tokens/chat-template.ts";
import type { DialectName } from "../../src/inference/tokens/dialects/dialect.ts";
import { loadTokenModel } from "../../src/inference/tokens/token-model.ts";
import { writeModelFolder } from "../../src/simulator/model-folder.ts";
import { parsePolicy } from "../../src/simulator/policy.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { byteTokenizer } from "../../src/simulator/tokenizer.ts";
import type { Trajectory } from "../../src/trajectory/record.ts";
import { Recorder } from "../../src/trajectory/recorder.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const PROMPT: Message[] = [
  { role: "system", content: "You look." },
  { role: "user", content: "token test: what is there? ¿ä𝄞" },
];

type Turn = { content?: string; tool_calls?: { name: string; arguments: unknown }[] };

/** The agent loop over tokens, against the simulated engine with the simulated model's own folder. */
async function setup(
  turns: Turn[],
  {
    sampling = {} as Sampling,
    maxModelLen = 100_000,
    weightsMs = 0,
    stallMs = 0,
    dialect = undefined as DialectName | undefined,
  } = {},
) {
  const dir = tempDir();
  writeModelFolder(dir.path);
  const model = await loadTokenModel(dir.path);
  const script = JSON.stringify({ match: "token test", variants: [turns] });
  const policy = parsePolicy(script, "policy");
  const simulator = await startSimulator({ policy, wire: "vllm", maxModelLen, weightsMs });
  const controller = new AbortController();
  const { signal } = controller;
  const probed = await probeBackend(simulator.url, { timeoutMs: 5000, signal });
  const backend: Backend = { id: "b", url: simulator.url, ...probed };
  const tools: Tool[] = [
    {
      schema: toolSchema("think", "Think.", {}, []),
      run: async () => ({ text: "a thing\nwith <tags> & ünïcode", ok: true }),
    },
    {
      schema: toolSchema("finish", "End.", {}, []),
      run: async ({ message }) => ({ text: "", ok: true, finish: String(message) }),
    },
  ];
  const engine = tokenEngine();
  const recorder = new Recorder("j", 1);
  const dialogue = await TokenDialogue.open(
    PROMPT,
    {
      ...{ jobId: "j", engine, backend, model, sampling, callTimeoutMs: 5000, stallMs, dialect },
      maxReplyBytes: 1_000_000,
      tools: tools.map((tool) => tool.schema),
    },
    signal,
  );
  return {
    model,
    simulator,
    abort: (reason: Error) => controller.abort(reason),
    run: () =>
      runAgent({
        ...{ dialogue, backendId: "b", tools, recorder, signal },
        rules: { ...DEFAULT_RULES, maxTurns: 10 },
        isAnswer: (content) => content.startsWith("Answer:"),
      }),
    trajectory: (): Trajectory => JSON.parse(recorder.finished()),
    async [Symbol.asyncDispose]() {
      engine[Symbol.dispose]();
      await simulator[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}

const call = (name: string, args: unknown) => ({ tool_calls: [{ name, arguments: args }] });

describe("a rollout by token ids", () => {
  test("reads calls in the dialect that is asked for instead of its template's", async () => {
    const said = (name: string, key: string, value: string) =>
      `So.\n<function=${name}>\n<parameter=${key}>${value}</parameter>\n</function>`;
    const turns = [said("think", "thought", "hm"), said("finish", "message", "done")];
    await using t = await setup(
      turns.map((content) => ({ content })),
      { dialect: "openhands" },
    );
    expect(await t.run()).toEqual({ stopReason: "finish", finalMessage: "done" });
    expect(t.trajectory().turns.map(({ tools }) => tools.map(({ name }) => name))).toEqual([
      ["think"],
      ["finish"],
    ]);
  });

  test("keeps what was sampled, and its whole sequence is what the template would give", async () => {
    await using t = await setup([
      { content: "I look.", ...call("think", { thought: "hm" }) },
      call("think", { thought: "again" }),
      call("finish", { message: "done" }),
    ]);
    expect(await t.run()).toEqual({ stopReason: "finish", finalMessage: "done" });
    const { token_ids, segments, messages, tools, turns } = t.trajectory();
    expect([token_ids, segments.length, turns.length]).toEqual(["exact", 1, 3]);
    const [segment] = segments;
    const kinds = segment?.spans.map(({ kind }) => kind);
    expect(kinds?.join(" ")).toBe("prompt sampled observation sampled observation sampled");
    const options = { addGenerationPrompt: false };
    const rendered = t.model.template.render(messages as TemplateMessage[], tools, options);
    const text = byteTokenizer.decode(segment?.ids ?? []);
    expect(rendered.startsWith(text)).toBe(true);
    expect(rendered.slice(text.length).trim()).toBe("");
    const sampled = segment?.spans.filter(({ mask }) => mask === 1) ?? [];
    const lengths = sampled.map(({ start, end }) => end - start);
    expect(turns.map(({ completion_tokens }) => completion_tokens)).toEqual(lengths);
    expect(segment?.logprobs?.length).toBe(lengths.reduce((sum, length) => sum + length, 0));
    expect(turns.map(({ logprobs_mode: mode }) => mode)).toEqual(["raw", "raw", "raw"]);
    expect(turns.map(({ prompt_tokens }) => prompt_tokens)).toEqual(
      sampled.map(({ start }) => start),
    );
  });

  test("tells the model of a call that is not JSON, and goes on", async () => {
    const broken = { content: '<tool_call>\n{"name": "think", "arguments": {\n</tool_call>' };
    await using t = await setup([broken, { content: "Answer: 4" }]);
    expect(await t.run()).toMatchObject({ stopReason: "answer" });
    const { messages } = t.trajectory();
    expect(messages.find(({ role }) => role === "tool")?.content).toBe(
      "ERROR: the tool call is not valid JSON.",
    );
  });

  test("tells the model of a call that its dialect does not read, and takes it for no answer", async () => {
    const unread = {
      content: 'Well. <tool_call>\n{"name": "think", "arguments": {}}\n</tool_call>',
    };
    await using t = await setup([unread, { content: "Answer: 4" }], { dialect: "openhands" });
    expect(await t.run()).toMatchObject({ stopReason: "answer" });
    const { messages } = t.trajectory();
    expect(messages.find(({ role }) => role === "tool")?.content).toBe(
      "ERROR: the tool call is not in the form that it must have.",
    );
  });

  test("that is aborted within a streamed turn keeps what was sampled of it", async () => {
    const content = "a thought of many tokens, which is never ended";
    await using t = await setup([{ content }], { weightsMs: 15, stallMs: 5_000 });
    const probed = t.simulator.requests.total;
    const over = t.run().catch((error) => error);
    await waitFor(() => t.simulator.requests.total > probed, "the call");
    const reason = new Error("cancelled");
    setTimeout(() => t.abort(reason), 200);
    expect(await over).toBe(reason);
    const { segments, turns, messages } = t.trajectory();
    expect(turns.map(({ finish_reason }) => finish_reason)).toEqual(["abort"]);
    const [span] = segments[0]?.spans.filter(({ mask }) => mask === 1) ?? [];
    const text = byteTokenizer.decode(segments[0]?.ids.slice(span?.start, span?.end) ?? []);
    expect(content.startsWith(text) && text.length > 0).toBe(true);
    expect(messages.at(-1)).toEqual({ role: "assistant", content: text });
    expect(segments[0]?.logprobs?.length).toBe(text.length);
  });

  test("ends as `context` when nothing more fits, with what there is", async () => {
    await using t = await setup(
      Array.from({ length: 9 }, (_, index) => call("think", { thought: `${index}` })),
      { maxModelLen: 1_400 },
    );
    const { stopReason } = await t.run();
    expect(stopReason).toBeOneOf(["context", "length"]);
    const { segments } = t.trajectory();
    expect(segments[0]?.ids.length).toBeLessThanOrEqual(1_400);
  });
});

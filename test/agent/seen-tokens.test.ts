import { describe, expect, test } from "bun:test";
import { runAgent } from "../../src/agent/loop.ts";
import { DEFAULT_RULES } from "../../src/agent/rules.ts";
import { SeenTokens } from "../../src/agent/seen-tokens.ts";
import { TextDialogue } from "../../src/agent/text-dialogue.ts";
import { type Tool, toolSchema } from "../../src/agent/tool.ts";
import type { Backend } from "../../src/inference/engine.ts";
import { openAiChat } from "../../src/inference/openai-chat.ts";
import { parsePolicy } from "../../src/simulator/policy.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { byteTokenizer } from "../../src/simulator/tokenizer.ts";
import type { Trajectory } from "../../src/trajectory/record.ts";
import { Recorder } from "../../src/trajectory/recorder.ts";
import { tokenProblem } from "../../src/trajectory/validate.ts";
import { toldTurns } from "../../src/worker/told-turns.ts";
import { profileOf } from "../inference/token-setup.ts";

const call = (promptIds: number[], ids: number[]) => ({
  ...{ promptIds, ids },
  logprobs: ids.map(() => -1),
});

describe("ids that an engine tells with each answer", () => {
  test("are one sequence where each prompt goes on from the last", () => {
    const seen = new SeenTokens();
    seen.add(call([1, 2], [3, 4]));
    seen.add(call([1, 2, 3, 4, 5], [6]));
    const spans = [
      { kind: "prompt", start: 0, end: 2, mask: 0 },
      { kind: "sampled", start: 2, end: 4, mask: 1, turn: 0 },
      { kind: "observation", start: 4, end: 5, mask: 0 },
      { kind: "sampled", start: 5, end: 6, mask: 1, turn: 1 },
    ];
    const ids = [1, 2, 3, 4, 5, 6];
    expect(seen.segments() as unknown[]).toEqual([
      { ids, spans, fork: null, logprobs: [-1, -1, -1] },
    ]);
  });

  test("leave out an end of turn that a history has otherwise", () => {
    const seen = new SeenTokens();
    seen.add(call([1, 2], [3, 90]));
    seen.add(call([1, 2, 3, 91, 5], [6, 90]));
    const [segment] = seen.segments();
    expect([segment?.ids, segment?.spans[1]?.dropped]).toEqual([[1, 2, 3, 91, 5, 6, 90], 90]);
    expect(segment?.logprobs).toEqual([-1, -1, -1]);
  });

  test("begin another segment where the engine's prompt is another one", () => {
    const seen = new SeenTokens();
    seen.add(call([1, 2], [3, 4, 5]));
    seen.add(call([1, 2, 30, 5, 6], [7]));
    const [first, second] = seen.segments();
    expect(first?.ids).toEqual([1, 2, 3, 4, 5]);
    expect([second?.ids, second?.fork]).toEqual([
      [1, 2, 30, 5, 6, 7],
      {
        ...{ from: 0, common: 2, reason: "prompt_differs" },
        detail: "id 2 is 30 in the engine's prompt, and was 3",
      },
    ]);
  });
});

const POLICY = JSON.stringify({
  match: "",
  variants: [
    [
      { content: "I look.", tool_calls: [{ name: "think", arguments: { thought: "hm" } }] },
      { content: "Answer: 4" },
    ],
  ],
});
const PROMPT = [{ role: "user" as const, content: "Go, naïvely." }];

/** The loop by messages, on an engine that tells its ids. */
async function setup(keepIds = true) {
  const simulator = await startSimulator({ policy: parsePolicy(POLICY, "p"), wire: "vllm" });
  const client = openAiChat();
  const profile = profileOf("chat_ids", { logprobs_mode: "raw" });
  const backend: Backend = { id: "b", url: simulator.url, model: "simulated", profile };
  const schema = toolSchema("think", "Think.", {}, []);
  const tools: Tool[] = [{ schema, run: async () => ({ text: "noted", ok: true }) }];
  const fixed = { jobId: "j", callTimeoutMs: 5_000, maxReplyBytes: 1_000_000, sampling: {} };
  const dialogue = () =>
    new TextDialogue(PROMPT, { ...fixed, engine: client, backend, tools: [schema], keepIds });
  const recorder = new Recorder("j", 1);
  await runAgent({
    ...{
      dialogue: dialogue(),
      backendId: "b",
      tools,
      recorder,
      rules: { ...DEFAULT_RULES, maxTurns: 5 },
    },
    ...{ signal: new AbortController().signal, isAnswer: (text) => text.startsWith("Answer:") },
  });
  const json = recorder.finished();
  return {
    dialogue,
    json,
    trajectory: JSON.parse(json) as Trajectory,
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      await simulator.stop();
    },
  };
}

test("a rollout by messages keeps the ids that its engine saw and sampled", async () => {
  await using t = await setup();
  const { token_ids, segments, turns } = t.trajectory;
  expect([token_ids, segments.length, turns.length]).toEqual(["exact", 1, 2]);
  const text = byteTokenizer.decode(segments[0]?.ids ?? []);
  expect(text).toContain("Go, naïvely.");
  expect(text).toEndWith("<|im_start|>assistant\nAnswer: 4<|im_end|>");
  expect(tokenProblem(segments, turns)).toBeNull();
  expect(turns.map(({ logprobs_mode: mode }) => mode)).toEqual(["raw", "raw"]);
});

test("told again from its record it has the same ids", async () => {
  await using t = await setup();
  const again = t.dialogue();
  const { messages, turns } = toldTurns(t.json);
  for (const told of turns) {
    again.add(...messages.slice(again.messages.length, told.turn.message));
    await again.recall(told);
    expect(again.messages.length).toBe(messages.indexOf(told.message) + 1);
  }
  expect(again.segments()).toEqual(t.trajectory.segments);
});

test("a rollout that asks for text has none", async () => {
  await using t = await setup(false);
  expect([t.trajectory.token_ids, t.trajectory.segments]).toEqual(["absent", []]);
});

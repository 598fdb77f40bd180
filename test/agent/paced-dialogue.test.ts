import { describe, expect, test } from "bun:test";
import { type AgentOptions, runAgent } from "../../src/agent/loop.ts";
import { Pace } from "../../src/agent/pace.ts";
import { PacedDialogue } from "../../src/agent/paced-dialogue.ts";
import { DEFAULT_RULES } from "../../src/agent/rules.ts";
import { TextDialogue } from "../../src/agent/text-dialogue.ts";
import { TokenDialogue } from "../../src/agent/token-dialogue.ts";
import { type Tool, toolSchema } from "../../src/agent/tool.ts";
import { ServiceError } from "../../src/errors.ts";
import type { Backend, Message } from "../../src/inference/engine.ts";
import { probeBackend } from "../../src/inference/probe.ts";
import { tokenEngine } from "../../src/inference/token-engine.ts";
import { loadTokenModel } from "../../src/inference/tokens/token-model.ts";
import { writeModelFolder } from "../../src/simulator/model-folder.ts";
import { parsePolicy } from "../../src/simulator/policy.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";
import type { Trajectory } from "../../src/trajectory/record.ts";
import { Recorder } from "../../src/trajectory/recorder.ts";
import { toldTurns } from "../../src/worker/told-turns.ts";
import { BACKEND, calls, FakeEngine, says } from "../support/fake-engine.ts";
import { tempDir } from "../support/temp-dir.ts";

const PROMPT: Message[] = [{ role: "user", content: "token test: count." }];
type Allowance = ConstructorParameters<typeof Pace>[0];

/** One stay of a rollout in RUN: its loop with a tool that counts, over the dialogue that it is given. */
function stay(dialogue: TextDialogue | TokenDialogue, allowed: Allowance, record: string | null) {
  const recorder = new Recorder("j", 1);
  const paused = Promise.withResolvers<string>();
  const pace = new Pace(allowed, () => paused.resolve(recorder.toJson()));
  const abort = new AbortController();
  let count = 0;
  const think: Tool = {
    schema: toolSchema("think", "Think.", {}, []),
    run: async () => ({ text: `number ${++count}`, ok: true }),
  };
  const options: AgentOptions = {
    dialogue: new PacedDialogue(dialogue, pace, record === null ? null : toldTurns(record)),
    ...{ backendId: "b1", tools: [think], recorder, signal: abort.signal },
    rules: { ...DEFAULT_RULES, maxTurns: 10 },
    isAnswer: (content) => content.startsWith("Answer:"),
  };
  const run = runAgent(options);
  run.catch(() => {});
  return {
    pace,
    run,
    /** Its record, once it waits. */
    paused: paused.promise,
    abort,
    get count() {
      return count;
    },
    trajectory: (): Trajectory => JSON.parse(recorder.toJson()),
  };
}

const SCRIPT = [
  calls(["think", {}]),
  calls(["think", {}]),
  calls(["think", {}]),
  says("Answer: 3"),
];

function textDialogue(engine: FakeEngine) {
  const limits = { callTimeoutMs: 1234, maxReplyBytes: 5678 };
  const options = { jobId: "j", engine, backend: BACKEND, sampling: {}, tools: [], ...limits };
  return new TextDialogue(PROMPT, options);
}

describe("a rollout", () => {
  test("waits when its turns are used up, and goes on where it was when it is allowed more", async () => {
    const engine = new FakeEngine(SCRIPT);
    const it = stay(textDialogue(engine), { turns: 2, tokens: null }, null);
    const record: Trajectory = JSON.parse(await it.paused);
    expect([record.turns.length, record.messages.at(-1)?.content]).toEqual([2, "number 2"]);
    expect(engine.requests).toHaveLength(2);
    it.pace.allow({ turns: 2, tokens: null });
    expect(await it.run).toEqual({ stopReason: "answer", finalMessage: "Answer: 3" });
    expect([engine.requests.length, it.count]).toEqual([4, 3]);
  });

  test("waits when its tokens are used up, before its first turn where it may take none, and ends when it is cancelled", async () => {
    const engine = new FakeEngine(SCRIPT);
    // Each reply has two tokens.
    const it = stay(textDialogue(engine), { turns: null, tokens: 3 }, null);
    const record: Trajectory = JSON.parse(await it.paused);
    expect(record.turns).toHaveLength(2);
    const reason = new ServiceError("cancelled", "no longer");
    it.abort.abort(reason);
    expect(await it.run.catch((error) => error)).toBe(reason);
    const none = stay(textDialogue(engine), { turns: 0, tokens: null }, null);
    expect(JSON.parse(await none.paused).turns).toEqual([]);
  });

  test("begins again with its record: told turns, calls that are carried out anew, and then the model", async () => {
    const whole = stay(textDialogue(new FakeEngine(SCRIPT)), null, null);
    await whole.run;
    const record = await stay(
      textDialogue(new FakeEngine(SCRIPT)),
      { turns: 2, tokens: null },
      null,
    ).paused;
    const engine = new FakeEngine(SCRIPT.slice(2));
    const again = stay(textDialogue(engine), { turns: 5, tokens: null }, record);
    expect(await again.run).toEqual({ stopReason: "answer", finalMessage: "Answer: 3" });
    expect([engine.requests.length, again.count]).toEqual([2, 3]);
    expect(again.trajectory().messages).toEqual(whole.trajectory().messages);
  });

  test("is not gone on with where a tool answers otherwise than it did", async () => {
    const record = await stay(
      textDialogue(new FakeEngine(SCRIPT)),
      { turns: 2, tokens: null },
      null,
    ).paused;
    const other = record.replace("number 2", "number 9");
    const again = stay(textDialogue(new FakeEngine([])), null, other);
    expect(await again.run.catch((error) => error)).toMatchObject({
      code: "replay_diverged",
      message: "a paused rollout can't be gone on with: message 4 is not what it was",
    });
    const prompt = stay.bind(null, textDialogue(new FakeEngine([])), null);
    expect(() => prompt(record.replace("count.", "add."))).toThrow("message 0 is not what it was");
  });
});

test("ids, masks, log-probabilities and weight versions are those of one rollout that was never paused", async () => {
  using dir = tempDir();
  writeModelFolder(dir.path);
  const model = await loadTokenModel(dir.path);
  const turn = { tool_calls: [{ name: "think", arguments: {} }] };
  const turns = [turn, turn, turn, { content: "Answer: ünïcode" }];
  const script = JSON.stringify({ match: "token test", variants: [turns] });
  const policy = parsePolicy(script, "policy");
  await using simulator = await startSimulator({ policy, wire: "vllm", maxModelLen: 100_000 });
  const { signal } = new AbortController();
  const backend: Backend = {
    ...{ id: "b", url: simulator.url },
    ...(await probeBackend(simulator.url, { timeoutMs: 5000, signal })),
  };
  using engine = tokenEngine();
  let version = "1";
  const versioned = {
    async generate(...call: Parameters<typeof engine.generate>) {
      const reply = await engine.generate(...call);
      const spans = [{ version, start: 0, end: reply.tokenIds.length }];
      return { ...reply, weightVersion: version, weightSpans: spans };
    },
  };
  const think = toolSchema("think", "Think.", {}, []);
  const dialogue = () =>
    TokenDialogue.open(
      PROMPT,
      {
        ...{ jobId: "j", engine: versioned, backend, model, sampling: {}, callTimeoutMs: 5000 },
        ...{ maxReplyBytes: 1_000_000, tools: [think] },
      },
      signal,
    );
  const whole = stay(await dialogue(), null, null);
  await whole.run;
  const record = await stay(await dialogue(), { turns: 2, tokens: null }, null).paused;
  version = "2";
  const again = stay(await dialogue(), null, record);
  await again.run;
  const { segments, turns: told, messages } = again.trajectory();
  expect(segments).toEqual(whole.trajectory().segments);
  expect(messages).toEqual(whole.trajectory().messages);
  expect(told.map(({ weight_version: of }) => of)).toEqual(["1", "1", "2", "2"]);
  const other = JSON.parse(record);
  other.segments[0].ids[3]++;
  const refused = stay(await dialogue(), null, JSON.stringify(other));
  expect(await refused.run.catch(({ code }) => code)).toBe("replay_diverged");
});

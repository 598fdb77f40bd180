import { describe, expect, test } from "bun:test";
import type { ChatReply } from "../../src/inference/engine.ts";
import type { TokenSegment } from "../../src/trajectory/record.ts";
import { Recorder } from "../../src/trajectory/recorder.ts";
import { failureOf } from "../support/failure.ts";
import { calls, recorded, says } from "../support/fake-engine.ts";

const EMPTY = {
  version: 1,
  job_id: "j",
  attempt: 2,
  token_ids: "absent",
  segments: [],
  tools: [],
  messages: [],
  turns: [],
  stop_reason: null,
};

function read(recorder: Recorder) {
  return JSON.parse(recorder.toJson());
}

test("before anything happened there is nothing worth returning", () => {
  const recorder = new Recorder("j", 2);
  expect([recorder.hasContent, recorder.turns, read(recorder)]).toEqual([false, 0, EMPTY]);
});

test("the prompt alone is already worth returning", () => {
  const recorder = new Recorder("j", 2);
  const prompt = [{ role: "user", content: "Go." }] as const;
  recorder.begin([...prompt], [], () => null);
  expect([recorder.hasContent, recorder.turns]).toEqual([true, 0]);
  expect(read(recorder)).toEqual({ ...EMPTY, messages: prompt });
});

describe("a record", () => {
  test("points from every turn and every tool to its message", () => {
    const recorder = new Recorder("j", 2);
    recorder.begin([{ role: "user", content: "Go." }], [], () => null);
    recorder.call("b1", recorded(calls(["think", {}], ["look", {}])));
    const ran = { name: "think", duration_ms: 1.5, status: "ok" as const };
    recorder.observe({ role: "tool", content: "1", tool_call_id: "call_0" }, ran);
    const failed = { name: "look", duration_ms: 2, status: "timeout" as const };
    recorder.observe({ role: "tool", content: "2", tool_call_id: "call_1" }, failed);
    recorder.say({ role: "user", content: "Go on." });
    recorder.call("b2", recorded(calls(["think", {}])));
    recorder.observe({ role: "tool", content: "3", tool_call_id: "call_0" }, ran);
    recorder.stop("max_turns");
    const { messages, turns, stop_reason } = read(recorder);
    expect(messages.map(({ role }: { role: string }) => role)).toEqual([
      "user",
      "assistant",
      "tool",
      "tool",
      "user",
      "assistant",
      "tool",
    ]);
    const counted = { prompt_tokens: 10, completion_tokens: 2 };
    const times = {
      started_ms: expect.any(Number),
      cached_tokens: null,
      weight_version: null,
      ...{ weight_spans: [], logprobs_mode: null },
      engine_ms: 0,
      queue_ms: null,
      first_token_ms: null,
      waited_ms: 0,
      lost_tokens: 0,
    };
    expect(turns).toEqual([
      {
        message: 1,
        backend_id: "b1",
        finish_reason: "tool_calls",
        ...counted,
        ...times,
        tools: [
          { ...ran, message: 2 },
          { ...failed, message: 3 },
        ],
      },
      {
        message: 5,
        backend_id: "b2",
        finish_reason: "tool_calls",
        ...counted,
        ...times,
        tools: [{ ...ran, message: 6 }],
      },
    ]);
    expect([stop_reason, recorder.turns]).toEqual(["max_turns", 2]);
  });

  test("has null where the engine did not count its tokens, and keeps what the model thought", () => {
    const recorder = new Recorder("j", 2);
    const message = { role: "assistant", content: "4", reasoning_content: "2 + 2" } as const;
    const reply: ChatReply = {
      ...says("4"),
      message,
      promptTokens: null,
      completionTokens: null,
    };
    recorder.call("b1", recorded(reply));
    const record = read(recorder);
    expect(record.messages).toEqual([message]);
    expect(record.turns).toMatchObject([{ prompt_tokens: null, completion_tokens: null }]);
  });

  test("says when a call began, not when it ended, and never before the record", () => {
    let nowMs = 5_000;
    const recorder = new Recorder("j", 2, () => nowMs);
    nowMs += 61_000;
    recorder.call("b1", recorded({ ...says("4"), durationMs: 60_000 }));
    recorder.call("b1", recorded({ ...says("of an earlier record"), durationMs: 70_000 }));
    const { turns } = read(recorder);
    expect(turns).toMatchObject([
      { started_ms: 1_000, engine_ms: 60_000 },
      { started_ms: 0, engine_ms: 70_000 },
    ]);
  });

  test("can be read at any moment, and goes on afterwards", () => {
    const recorder = new Recorder("j", 2);
    recorder.call("b1", recorded(says("a")));
    const partial = recorder.toJson();
    recorder.call("b1", recorded(says("b")));
    expect(JSON.parse(partial).messages).toEqual([{ role: "assistant", content: "a" }]);
    expect(read(recorder).messages.length).toBe(2);
  });
});

test("ids that do not hold together are given to nobody, and the record says so", async () => {
  const recorder = new Recorder("j", 2);
  const segment: TokenSegment = {
    ids: [1, 2],
    spans: [{ kind: "prompt", start: 0, end: 2, mask: 0 }],
    ...{ logprobs: [], fork: null },
  };
  recorder.begin([{ role: "user", content: "Go." }], [], () => [segment]);
  expect(read(recorder)).toMatchObject({ token_ids: "exact", segments: [segment] });
  recorder.call("b1", recorded(says("Two ids that the segment lacks.")));
  expect(read(recorder)).toMatchObject({ token_ids: "refused", segments: [] });
  expect((await failureOf(() => recorder.finished())).code).toBe("token_invariant");
});

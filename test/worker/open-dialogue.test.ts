import { expect, test } from "bun:test";
import type { Backend } from "../../src/inference/engine.ts";
import type { EngineProfile, Rung } from "../../src/inference/engine-profile.ts";
import { openDialogue, type TokenMode } from "../../src/worker/open-dialogue.ts";
import { failureOf } from "../support/failure.ts";
import { BACKEND, FakeEngine, fakeEngines } from "../support/fake-engine.ts";

function open(rung: Rung, mode: TokenMode, folder: Partial<Backend> = {}) {
  const profile = { kind: "vllm", rung, tokenizes_chat: false } as EngineProfile;
  return openDialogue(fakeEngines(new FakeEngine([])), {
    ...{ jobId: "j", attempt: 1, mode, route: undefined, sampling: {}, prompt: [], tools: [] },
    ...{ callTimeoutMs: 1_000, maxReplyBytes: 1_000, signal: new AbortController().signal },
    backend: { ...BACKEND, profile, ...folder },
  });
}

test.each([
  ["chat", { modelDir: "/m" }, "it takes messages only"],
  ["completions", {}, "its model folder is not known, and it has no routes"],
  ["prorl_generate", {}, "its model folder is not known, and it has no routes"],
] as const)("exact ids are refused by %s with %j", async (rung, folder, why) => {
  const failure = await failureOf(() => open(rung, "exact", folder));
  expect(failure).toMatchObject({ code: "tokens_unavailable", boundary: "engine" });
  expect(failure.message).toContain(why);
  expect(failure.mend).toContain("--model-dir");
});

test("an engine that takes messages is called by them where ids can't be had", async () => {
  for (const rung of ["chat", "completions", "sglang_generate"] as const) {
    expect((await open(rung, "auto")).segments()).toBeNull();
  }
});

test("one that takes ids only is not asked by messages, which it would not know", async () => {
  for (const mode of ["auto", "text"] as const) {
    const failure = await failureOf(() => open("prorl_generate", mode));
    expect([failure.code, failure.mend]).toEqual([
      ...["tokens_unavailable", "add the backend with --model-dir, and ask for no text"],
    ]);
  }
});

test("one that tells its ids with each chat is good enough for exact ids", async () => {
  expect((await open("chat_ids", "exact")).segments()).toBeNull();
});

import { describe, expect, test } from "bun:test";
import type { TokenRung } from "../../src/inference/engine-profile.ts";
import { parseFault } from "../../src/simulator/faults.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { chatIds, END, tokenSetup } from "./token-setup.ts";

const RUNGS: [TokenRung, "vllm" | "vllm-old" | "sglang" | "prorl"][] = [
  ["inference_generate", "vllm"],
  ["completions", "vllm"],
  ["completions_text_ids", "vllm-old"],
  ["sglang_generate", "sglang"],
  ["prorl_generate", "prorl"],
];

describe.each(RUNGS)("by %s", (rung, wire) => {
  test.each([
    ["status=503,limit=2", "stop"],
    ["status=429,limit=1,retry_after=0", "stop"],
    ["reset,limit=1", "stop"],
    ["status=503", "engine_overloaded"],
    ["status=429", "engine_overloaded"],
    ["status=502", "engine_unreachable"],
    ["status=504", "engine_unreachable"],
    ["status=500", "engine_bad_reply"],
    ["status=404", "engine_refused"],
    ["status=422", "engine_refused"],
    ["reset", "engine_unreachable"],
    ["garbage", "engine_bad_reply"],
    ["truncate", "engine_unreachable"],
    ["stall", "engine_timeout"],
    ["lengths", "token_invariant"],
    ["nan", "token_invariant"],
    ["bad_ids", "token_invariant"],
  ])("P13: the fault %p ends as %p, and the next call does not notice", async (fault, outcome) => {
    await using simulator = await startSimulator({
      policy: { kind: "echo" },
      wire,
      faults: [parseFault(`${fault},turn=0`)],
    });
    using client = tokenSetup(simulator.url, rung);
    const promptIds = chatIds("hello");
    const timeoutMs = fault === "stall" ? 100 : 20_000;
    const ended = await client.generate({ promptIds, timeoutMs }).then(
      ({ finishReason }) => finishReason as string,
      (error) => error.code,
    );
    expect(ended).toBe(outcome);
    const next = [...promptIds, END, ...chatIds("and now")];
    expect((await client.generate({ promptIds: next })).finishReason).toBe("stop");
  });
});

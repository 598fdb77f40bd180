import { expect, test } from "bun:test";
import { ServiceError } from "../../src/errors.ts";
import { Weights } from "../../src/inference/weights.ts";
import { byteTokenizer } from "../../src/simulator/tokenizer.ts";
import { waitFor } from "../support/wait-for.ts";
import { weightsRecord } from "../support/weights.ts";
import { balanceSetup } from "./balance-setup.ts";

const NEVER = new AbortController().signal;
const TEXT = "an answer of some tokens, and of a few more";
const LIMITS = { timeoutMs: 2_000 };
const STREAMED = { ...LIMITS, stallMs: 1_500 };
const BOUND_MS = 30_000;

type Setup = ReturnType<typeof balanceSetup>;
type Rollout = ReturnType<Setup["rollout"]>;
const said = (ids: number[]) => byteTokenizer.decode(ids).replace("<|im_end|>", "");
const byIds = (limits: object) => async (rollout: Rollout) => {
  const { tokenIds, logprobs } = await rollout.turn(TEXT, NEVER, limits);
  return said(tokenIds) === TEXT && logprobs?.length === tokenIds.length;
};

const WAYS = [
  ["vLLM's ids, streamed", "vllm", byIds(STREAMED)],
  ["vLLM's ids", "vllm", byIds(LIMITS)],
  ["SGLang's ids", "sglang", byIds(LIMITS)],
  ["ProRL's ids", "prorl", byIds(LIMITS)],
  [
    "chat, streamed",
    "openai",
    async (r: Rollout) => (await r.chat(TEXT, STREAMED)).message.content === TEXT,
  ],
  ["chat", "openai", async (r: Rollout) => (await r.chat(TEXT, LIMITS)).message.content === TEXT],
] as const;

/** Faults of one call, and how its rollout may end: the engine's failures are tried again, wrong numbers are not. */
const FAULTS = {
  ...{ "status=500": "whole", "status=503": "whole", reset: "whole", stall: "whole" },
  ...{ garbage: "whole", truncate: "whole" },
  ...{ lengths: "token_invariant", nan: "token_invariant", bad_ids: "token_invariant" },
};

const EVENTS: Record<string, (t: Setup, weights: Weights) => Promise<void>> = {
  async "is paused, and its calls are waited for"(_, weights) {
    await weights.pause("drain", BOUND_MS, NEVER);
    weights.announce("2");
  },
  async "is paused, and its calls are broken off"(_, weights) {
    await weights.pause("abort", BOUND_MS, NEVER);
    weights.announce("2");
  },
  async "gets new weights under its calls"(_, weights) {
    await weights.pause("keep", BOUND_MS, NEVER);
    weights.announce("2");
  },
  async "is drained"({ registry, desk }) {
    registry.drain("a", "move");
    desk.plan();
  },
  async "is removed"({ registry, desk }) {
    registry.remove("a", "move");
    desk.plan();
  },
};

test.each(WAYS)(
  "by %s, each fault of one call is a typed end, and costs no other, whatever becomes of its engine",
  async (_name, wire, call) => {
    const startMs = performance.now();
    const cases = Object.keys(EVENTS).flatMap((event) =>
      Object.entries(FAULTS).map(([fault, expected]) => ({ event, fault, expected })),
    );
    const wrong = cases.map(async ({ event, fault, expected }) => {
      await using t = balanceSetup();
      const clock = { nowMs: () => 0 };
      const weights = new Weights({ desk: t.desk, record: weightsRecord(), clock });
      const a = await t.simulate("a", { wire, weightsMs: 1 });
      const b = await t.simulate("b", { wire, weightsMs: 1 });
      for (const { backend } of [a, b]) t.registry.add(backend);
      await setFaults(a.url, [`${fault},limit=1`]);
      const before = a.requests.total;
      const calls = ["a", "b", "a", "b"].map((id) => outcome(call(t.rollout(id))));
      await waitFor(() => a.requests.total > before, "the engine to have a call");
      await EVENTS[event]?.(t, weights);
      const outcomes = await Promise.all(calls);
      const broken = outcomes.filter((one) => one !== "whole");
      const isFine = broken.length <= 1 && broken.every((one) => one === expected);
      return isFine ? [] : [`${fault} while it ${event}: ${outcomes}`];
    });
    expect((await Promise.all(wrong)).flat()).toEqual([]);
    expect(performance.now() - startMs).toBeLessThan(BOUND_MS);
  },
);

/** Only now, so that its probe met none. */
async function setFaults(url: string, faults: string[]): Promise<void> {
  const answer = await fetch(url.replace("/v1", "/simulator/faults"), {
    method: "POST",
    body: JSON.stringify({ faults }),
  });
  expect(answer.status).toBe(200);
}

async function outcome(call: Promise<boolean>): Promise<string> {
  try {
    return (await call) ? "whole" : "another answer";
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
}

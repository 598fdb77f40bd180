import { describe, expect, test } from "bun:test";
import { Weights } from "../../src/inference/weights.ts";
import { byteTokenizer } from "../../src/simulator/tokenizer.ts";
import { failureOf } from "../support/failure.ts";
import { waitFor } from "../support/wait-for.ts";
import { weightsRecord } from "../support/weights.ts";
import { balanceSetup } from "./balance-setup.ts";

const NEVER = new AbortController().signal;
const said = (ids: number[]) => byteTokenizer.decode(ids).replace("<|im_end|>", "");
const LONG = "a text that takes a while to say ".repeat(4);

/** Two rollouts in the middle of a turn, on an engine of each kind. */
async function setup(engine: { weightsMs?: number; wire?: "vllm" | "sglang" | "prorl" } = {}) {
  const t = balanceSetup();
  const clock = { nowMs: () => 0 };
  const record = weightsRecord();
  const weights = new Weights({ desk: t.desk, record, clock });
  const simulator = await t.simulate("a", { weightsMs: 1, wire: "vllm", ...engine });
  t.registry.add(simulator.backend);
  const control = async (path: string, body = {}) => {
    const url = simulator.url.replace("/v1", path);
    const response = await fetch(url, { method: "POST", body: JSON.stringify(body) });
    expect(response.status).toBe(200);
  };
  return {
    ...{ ...t, weights, record, clock, simulator, control },
    [Symbol.asyncDispose]: t[Symbol.asyncDispose],
  };
}

describe("weights that are announced", () => {
  test("are stamped on what is sampled from then on, and are known after a restart", async () => {
    await using t = await setup({ weightsMs: 0 });
    const rollout = t.rollout();
    expect((await rollout.turn("x")).weightVersion).toBe("0");
    t.weights.announce("41");
    t.weights.announce("42");
    const { weightVersion, weightSpans } = await rollout.turn("ab");
    expect([weightVersion, weightSpans]).toEqual(["42", [{ version: "42", start: 0, end: 3 }]]);
    expect(["42", "41", "40"].map((version) => t.weights.ageOf(version))).toEqual([0, 1, null]);
    await t.weights.pause("drain", 0, NEVER);
    const again = new Weights({ desk: t.desk, record: t.record, clock: t.clock });
    expect([again.version, again.paused, again.ageOf("41")]).toEqual(["42", "drain", 1]);
  });

  test("wake who has to see what is too old for them, and those that were known do not", async () => {
    await using t = await setup();
    const before = t.wakes.count;
    t.weights.announce("41");
    t.weights.announce("41");
    expect(t.wakes.count - before).toBe(1);
  });

  test.each(["turn", "chat"] as const)(
    "keep the prefix caches of other weights apart, in each %s",
    async (by) => {
      await using t = await setup({ weightsMs: 0 });
      const rollout = t.rollout();
      const cached = async () => (await rollout[by](LONG)).cachedTokens;
      t.weights.announce("1");
      expect([await cached(), (await cached()) !== 0]).toEqual([0, true]);
      t.weights.announce("2");
      expect(await cached()).toBe(0);
    },
  );
});

describe("while weights change", () => {
  test("with drain, calls end by themselves and others wait, until the new ones are announced", async () => {
    await using t = await setup();
    const [first, second] = [t.rollout(), t.rollout()];
    const running = first.turn(LONG);
    await waitFor(() => t.desk.granted === 1, "the first call");
    expect(await failureOf(() => t.weights.pause("drain", 1, NEVER))).toMatchObject({
      ...{ code: "not_ready", message: expect.stringContaining("1 calls still run") },
    });
    const waiting = second.turn("late");
    await t.weights.pause("drain", 10_000, NEVER);
    expect((await running).weightVersion).toBe("0");
    await waitFor(() => t.desk.waiting === 1, "the second call to wait");
    expect(t.weights.view(1)).toMatchObject({ paused: "drain", running: 0, waiting: 1 });
    t.weights.announce("9");
    expect([(await waiting).weightVersion, t.weights.paused]).toEqual(["9", null]);
  });

  for (const wire of ["vllm", "sglang"] as const) {
    test(`with abort, ${wire} hands over what it has, and the turn goes on from there`, async () => {
      await using t = await setup({ wire });
      t.weights.announce("1");
      const running = t.rollout().turn(LONG);
      await waitFor(() => t.simulator.requests.inFlight === 1, "the engine to have the call");
      await t.weights.pause("abort", 10_000, NEVER);
      await t.control("/update_weight_version", { new_version: "2" });
      t.weights.announce("2");
      const { tokenIds, logprobs, weightSpans, finishReason } = await running;
      expect([said(tokenIds), finishReason, logprobs?.length]).toEqual([
        ...[LONG, "stop", tokenIds.length],
      ]);
      expect(weightSpans.at(-1)).toMatchObject({ version: "2", end: tokenIds.length });
      const cut = weightSpans.at(-1)?.start ?? 0;
      if (cut > 0) expect(weightSpans[0]).toEqual({ version: "1", start: 0, end: cut });
    });
  }

  test("with abort, an engine that can't hand over anything is asked anew", async () => {
    await using t = await setup({ wire: "prorl" });
    const running = t.rollout().turn(LONG);
    await waitFor(() => t.simulator.requests.inFlight === 1, "the engine to have the call");
    await t.weights.pause("abort", 10_000, NEVER);
    t.weights.announce("2");
    const { tokenIds, weightSpans } = await running;
    expect([said(tokenIds), weightSpans]).toEqual([
      ...[LONG, [{ version: "2", start: 0, end: tokenIds.length }]],
    ]);
  });

  test("with keep, calls go on, and nobody claims to know which weights sampled what", async () => {
    await using t = await setup({ wire: "prorl" });
    t.weights.announce("1");
    const running = t.rollout().turn(LONG);
    await waitFor(() => t.simulator.requests.inFlight === 1, "the engine to have the call");
    await t.weights.pause("keep", 0, NEVER);
    t.weights.announce("2");
    const { tokenIds, weightSpans } = await running;
    expect([said(tokenIds), weightSpans]).toEqual([LONG, []]);
  });

  test("an engine that breaks calls off itself costs them nothing", async () => {
    await using t = await setup();
    const running = t.rollout().turn(LONG);
    await waitFor(() => t.simulator.requests.inFlight === 1, "the engine to have the call");
    await t.control("/pause?mode=abort");
    await t.control("/update_weight_version", { new_version: "1" });
    await t.control("/resume");
    const { tokenIds, logprobs, weightSpans } = await running;
    expect([said(tokenIds), logprobs?.length]).toEqual([LONG, tokenIds.length]);
    expect(weightSpans.at(-1)?.version).toBe("1");
  });

  test("a rollout that is cancelled waits no longer", async () => {
    await using t = await setup();
    await t.weights.pause("drain", 0, NEVER);
    const abort = new AbortController();
    const waiting = failureOf(() => t.rollout().turn("x", abort.signal)).catch((why) => why);
    await waitFor(() => t.desk.waiting === 1, "the call to wait");
    abort.abort("enough");
    expect(await waiting).toBe("enough");
  });
});

describe("a pause whose trainer is not heard of any more", () => {
  test("lapses: calls go on, and what they sample is not taken for the weights of before", async () => {
    await using t = await setup({ weightsMs: 0 });
    const lapses: string[] = [];
    const { desk, record } = t;
    const clock = { now: 0, nowMs: () => clock.now };
    const onLapse = ({ mode }: { mode: string }) => lapses.push(mode);
    using weights = new Weights({ desk, record, clock, onLapse });
    weights.announce("1");
    await weights.pause("drain", 10_000, NEVER);
    await weights.pause("drain", 10_000, NEVER, 20);
    expect(weights.view(1)).toMatchObject({ paused: "drain", pausedUntilMs: 20, lapsed: false });
    const waiting = t.rollout().turn("x");
    await waitFor(() => desk.waiting === 1, "the call to wait");
    expect(lapses).toEqual([]);
    clock.now = 20;
    // The version that this engine tells by itself.
    expect((await waiting).weightVersion).toBe("0");
    expect(weights.view(1)).toMatchObject({ version: null, paused: null, lapsed: true });
    expect(lapses).toEqual(["drain"]);
    using again = new Weights({ desk, record, clock });
    expect([again.version, again.lapsed]).toEqual([null, true]);
    weights.announce("1");
    expect(weights.view(9)).toMatchObject({ version: "1", lapsed: false, history: [{}] });
    expect((await t.rollout().turn("x")).weightVersion).toBe("1");
  });

  test("lasts for its lease after a restart, wherever the clock was set, and one that has lapsed stays so", async () => {
    for (const jumpMs of [-7_200_000, 0, 7_200_000]) {
      await using t = await setup();
      const clock = { ms: 1e12, nowMs: () => clock.ms };
      const first = new Weights({ desk: t.desk, record: t.record, clock });
      await first.pause("keep", 0, NEVER, 5_000);
      first[Symbol.dispose]();
      clock.ms += jumpMs;
      using again = new Weights({ desk: t.desk, record: t.record, clock });
      const until = { paused: "keep", lapsed: false, pausedUntilMs: clock.ms + 5_000 } as const;
      expect({ jumpMs, ...again.view(1) }).toMatchObject({ jumpMs, ...until });
      again.resume();
      await again.pause("keep", 0, NEVER, 1);
      clock.ms += 2;
      await waitFor(() => again.lapsed, "the lapse");
      clock.ms -= 7_200_000;
      using third = new Weights({ desk: t.desk, record: t.record, clock });
      expect([third.lapsed, third.paused]).toEqual([true, null]);
      third.resume();
    }
  });

  test("lapses not as long as it is made again, and not after it was ended", async () => {
    await using t = await setup();
    const { desk, record } = t;
    const clock = { now: 0, nowMs: () => clock.now };
    using weights = new Weights({ desk, record, clock });
    weights.announce("1");
    await weights.pause("drain", 0, NEVER, 10);
    clock.now = 9;
    await weights.pause("drain", 0, NEVER, 10);
    clock.now = 18;
    using after = new Weights({ desk, record, clock });
    expect([after.paused, after.lapsed]).toEqual(["drain", false]);
    weights.resume();
    clock.now = 100;
    using later = new Weights({ desk, record, clock });
    expect([later.version, later.paused, later.lapsed]).toEqual(["1", null, false]);
  });
});

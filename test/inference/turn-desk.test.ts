import { describe, expect, test } from "bun:test";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { byteTokenizer } from "../../src/simulator/tokenizer.ts";
import { failureOf } from "../support/failure.ts";
import { waitFor } from "../support/wait-for.ts";
import { balanceSetup } from "./balance-setup.ts";

const said = (ids: number[]) => byteTokenizer.decode(ids).replace("<|im_end|>", "");

describe("a call", () => {
  test("goes to its rollout's backend, and says which that is", async () => {
    await using t = balanceSetup();
    for (const id of ["a", "b"]) t.registry.add((await t.simulate(id)).backend);
    const rollout = t.rollout("b");
    for (const text of ["one", "two"]) {
      const reply = await rollout.turn(text);
      expect([said(reply.tokenIds), reply.backendId]).toEqual([text, "b"]);
    }
    expect(t.registry.trajectory(rollout.jobId)).toMatchObject({
      backendId: "b",
      sampledTokens: 8,
    });
    rollout.end();
    expect(t.registry.list().map(({ live, turns }) => [live, turns])).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });

  test("waits in order while its backend has enough to do, and a wait can be cancelled", async () => {
    await using t = balanceSetup({ maxTurns: 1 });
    const engine = await t.simulate("a", { latencyMs: 30 });
    t.registry.add(engine.backend);
    const ended: string[] = [];
    const rollouts = ["1", "2", "3"].map((name) => ({ name, rollout: t.rollout() }));
    const abort = new AbortController();
    const cancelled = failureOf(() => t.rollout().turn("x", abort.signal)).catch((why) => why);
    const turns = rollouts.map(async ({ name, rollout }) => {
      await rollout.turn(name);
      ended.push(name);
    });
    await waitFor(() => t.desk.granted === 1, "the first call");
    abort.abort("no longer");
    expect(await cancelled).toBe("no longer");
    await Promise.all(turns);
    expect(ended).toEqual(["1", "2", "3"]);
    await waitFor(() => t.desk.granted === 0, "the leases to come back");
  });

  test("waits while the memory of its backend is full of the contexts of elder rollouts", async () => {
    await using t = balanceSetup();
    t.registry.add((await t.simulate("a")).backend);
    const [elder, younger] = [t.rollout(), t.rollout()];
    for (const rollout of [elder, younger]) await rollout.turn("hello");
    const entry = t.registry.get("a");
    const contextTokens = t.registry.trajectory(elder.jobId)?.contextTokens ?? 0;
    if (entry) entry.kvTokens = 1.5 * contextTokens;
    const waiting = younger.turn("hello");
    await elder.turn("hello");
    expect([t.desk.waiting, t.desk.granted]).toEqual([1, 0]);
    elder.end();
    expect((await waiting).backendId).toBe("a");
  });

  test("is counted for as long as it waits for leave, whatever for, and not while it runs", async () => {
    await using t = balanceSetup();
    t.registry.add((await t.simulate("a", { latencyMs: 50 })).backend);
    const rollout = t.rollout();
    const waitedMs = () => t.desk.waitedMs(rollout.jobId);
    await rollout.turn("hello");
    // Who is alone goes at once.
    expect(waitedMs()).toBeLessThan(50);
    t.desk.pause("keep");
    const turn = rollout.turn("hello");
    await waitFor(() => waitedMs() > 100, "the time to be counted");
    t.desk.resume();
    await waitFor(() => t.desk.granted === 1, "leave");
    const whole = waitedMs();
    await turn;
    expect([waitedMs(), t.desk.waitedMs("nobody")]).toEqual([whole, 0]);
  });

  test("that fails is tried again there, then elsewhere, where its rollout stays", async () => {
    await using t = balanceSetup();
    const bad = await t.simulate("bad");
    const good = await t.simulate("good");
    t.registry.add(bad.backend);
    t.registry.add(good.backend);
    const port = bad.port;
    await bad.stop();
    const fault = { kind: "status", status: 500, retryAfterS: null, rate: 1, turn: null } as const;
    const faults = [{ ...fault, limit: null }];
    const broken = await startSimulator({ policy: { kind: "echo" }, wire: "vllm", port, faults });
    const rollout = t.rollout("bad");
    expect((await rollout.turn("hello")).backendId).toBe("good");
    expect(broken.requests.faults).toBe(2);
    expect((await rollout.turn("again")).backendId).toBe("good");
    expect(broken.requests.faults).toBe(2);
    expect(t.registry.decisions.last(1)[0]).toMatchObject({
      ...{ from: "bad", backendId: "good", cause: "the call failed 2 times on bad" },
    });
    await broken.stop();
  });

  test("whose engine dies within a stream is gone on with elsewhere from what was sampled", async () => {
    await using t = balanceSetup();
    const text = "an answer of many tokens, begun here and ended there";
    const first = await t.simulate("first", { weightsMs: 15 });
    t.registry.add(first.backend);
    t.registry.add((await t.simulate("second")).backend);
    const turn = t.rollout("first").turn(text, undefined, { stallMs: 5_000 });
    await waitFor(() => first.requests.inFlight === 1, "the call");
    setTimeout(() => first.stop(), 200);
    const reply = await turn;
    expect([said(reply.tokenIds), reply.backendId]).toEqual([text, "second"]);
    expect(reply.logprobs?.length).toBe(reply.tokenIds.length);
    // An engine tells of its weights when a reply ends.
    expect(reply.weightSpans).toEqual([]);
  });

  test("that is cancelled hands over what its turn had sampled, on whatever backends", async () => {
    await using t = balanceSetup();
    const engine = await t.simulate("a", { weightsMs: 15 });
    t.registry.add(engine.backend);
    const abort = new AbortController();
    const partials: string[] = [];
    const onPartial = (partial: { tokenIds: number[] }) => partials.push(said(partial.tokenIds));
    const text = "an answer of many tokens, which is never ended";
    const turn = t.rollout().turn(text, abort.signal, { stallMs: 5_000, onPartial });
    await waitFor(() => engine.requests.inFlight === 1, "the call");
    setTimeout(() => abort.abort("no longer"), 200);
    expect(await turn.catch((error) => error)).toBe("no longer");
    expect(partials).toHaveLength(1);
    expect(text.startsWith(partials[0] ?? "-") && partials[0] !== "").toBe(true);
  });

  test("that fails everywhere fails with what the engine said, after so many tries", async () => {
    await using t = balanceSetup({ maxRetries: 1 });
    const engine = await t.simulate("a");
    t.registry.add(engine.backend);
    await engine.stop();
    const failure = await failureOf(() => t.rollout().turn("x"));
    expect(failure).toMatchObject({ code: "engine_unreachable", boundary: "engine" });
  });
});

describe("a backend that dies", () => {
  test("costs no rollout that another can take, and comes back when it is up again", async () => {
    await using t = balanceSetup();
    const mortal = await t.simulate("mortal");
    t.registry.add(mortal.backend);
    t.registry.add((await t.simulate("other")).backend);
    await mortal.stop();
    const rollouts = Array.from({ length: 8 }, () => t.rollout("mortal"));
    const replies = await Promise.all(rollouts.map(({ turn }, index) => turn(`r${index}`)));
    expect(replies.map(({ tokenIds }) => said(tokenIds))).toEqual(
      rollouts.map((_, index) => `r${index}`),
    );
    expect(new Set(replies.map(({ backendId }) => backendId))).toEqual(new Set(["other"]));
    const entry = t.registry.get("mortal");
    await waitFor(() => entry?.health.state === "ejected", "its ejection");
    const policy = { kind: "echo" } as const;
    await using _again = await startSimulator({ policy, wire: "vllm", port: mortal.port });
    await waitFor(() => entry?.health.state === "trial", "its readmission");
    expect((await t.rollout("mortal").turn("back")).backendId).toBe("mortal");
  });

  test("as the only one makes calls wait until it is back, or for so long", async () => {
    await using t = balanceSetup();
    const engine = await t.simulate("only");
    t.registry.add(engine.backend);
    await engine.stop();
    const waiting = t.rollout().turn("patience");
    const entry = t.registry.get("only");
    await waitFor(() => entry?.health.state === "ejected", "its ejection");
    const policy = { kind: "echo" } as const;
    await using _again = await startSimulator({ policy, wire: "vllm", port: engine.port });
    expect(said((await waiting).tokenIds)).toBe("patience");

    await using u = balanceSetup({ backendWaitMs: 50 });
    const gone = await u.simulate("gone");
    u.registry.add(gone.backend);
    await gone.stop();
    const { code, message } = await failureOf(() => u.rollout().turn("x"));
    expect([code, message]).toEqual([
      "engine_unreachable",
      expect.stringContaining("no backend worked for 50 ms (gone: "),
    ]);
  });

  test("and comes back as another kind is called by its new routes", async () => {
    await using t = balanceSetup();
    const engine = await t.simulate("a");
    t.registry.add(engine.backend);
    await engine.stop();
    const options = { policy: { kind: "echo" }, wire: "sglang", port: engine.port } as const;
    await using _again = await startSimulator(options);
    expect(said((await t.rollout().turn("same ids")).tokenIds)).toBe("same ids");
    expect(t.registry.get("a")?.backend.profile?.rung).toBe("sglang_generate");
  });

  test("and comes back with another model is not let in", async () => {
    await using t = balanceSetup({ backendWaitMs: 300 });
    const engine = await t.simulate("a");
    t.registry.add(engine.backend);
    await engine.stop();
    const options = { policy: { kind: "echo" }, model: "other", port: engine.port } as const;
    await using _again = await startSimulator(options);
    const { code, message } = await failureOf(() => t.rollout().turn("x"));
    expect([code, message]).toEqual(["engine_unreachable", expect.stringContaining('"simulated"')]);
  });
});

describe("a backend that is drained", () => {
  test("keeps its rollouts to their end, or gives them away at their next turn", async () => {
    await using t = balanceSetup();
    for (const id of ["a", "b"]) t.registry.add((await t.simulate(id)).backend);
    const rollout = t.rollout("a");
    t.registry.drain("a", "finish");
    expect((await rollout.turn("stay")).backendId).toBe("a");
    t.registry.drain("a", "move");
    expect((await rollout.turn("go")).backendId).toBe("b");
    expect(t.registry.get("a")?.live).toBe(0);
  });
});

test("a rollout leaves a backend that thrashes, with few others, and the log says why", async () => {
  await using t = balanceSetup();
  for (const id of ["a", "b"]) t.registry.add((await t.simulate(id)).backend);
  const rollouts = [t.rollout("a"), t.rollout("a")];
  for (let turn = 0; turn < 4; turn++) for (const { turn: say } of rollouts) await say("same");
  const entry = t.registry.get("a");
  if (entry) entry.thrash = { baseline: 0.9, badLooks: 2 };
  const went = [];
  for (const { turn: say } of rollouts) went.push((await say("same")).backendId);
  expect(went).toEqual(["b", "a"]);
  expect(t.registry.decisions.last(1)).toMatchObject([{ from: "a", cause: "a thrashes" }]);
});

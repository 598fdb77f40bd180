import { describe, expect, test } from "bun:test";
import { EventQueue } from "../../../bench/balance/event-queue.ts";
import { VirtualEngine } from "../../../bench/balance/virtual-engine.ts";
import type { EngineModel } from "../../../src/simulator/engine-model.ts";

const MODEL: EngineModel = {
  ...{ weightsMs: 10, contextMs: 0, prefillTokensPerS: 1_000 },
  ...{ kvTokens: 1_000, maxBatch: 4 },
};

function setup(model: Partial<EngineModel> = {}) {
  const queue = new EventQueue();
  const engine = new VirtualEngine({ ...MODEL, ...model }, queue);
  const endsMs: Record<number, number> = {};
  const call = (owner: number, tokens: number, output: number, atMs = 0, group = `${owner}`) =>
    queue.at(atMs, () =>
      engine.call({ owner, group, tokens, sharedTokens: 50 }, output, () => {
        endsMs[owner] = Math.round(queue.nowMs());
      }),
    );
  return { queue, engine, call, endsMs };
}

describe("an engine in virtual time", () => {
  test("computes prompts one after another, and decodes nothing meanwhile", () => {
    const { queue, call, endsMs } = setup();
    call(1, 100, 10);
    call(2, 200, 10, 150);
    queue.run();
    // The first has made five tokens when the second comes, and stands still for 200 ms.
    expect(endsMs).toEqual({ 1: 100 + 50 + 200 + 50, 2: 150 + 200 + 100 });
  });

  test("makes steps that are as long as the contexts in it", () => {
    const { queue, call, endsMs } = setup({ contextMs: 0.1, prefillTokensPerS: 1e9 });
    call(1, 100, 10);
    call(2, 200, 10);
    queue.run();
    // 300 tokens at first, two more each step.
    const both = 10 * 10 + 0.1 * (10 * 300 + (2 * 10 * 10) / 2);
    expect(endsMs).toEqual({ 1: both, 2: both });
  });

  test("finds what it computed before, of the same owner or of its group, and counts that", () => {
    const { queue, engine, call } = setup();
    call(1, 100, 10, 0, "g");
    call(1, 150, 10, 1_000, "g");
    call(2, 80, 10, 2_000, "g");
    call(3, 80, 10, 3_000, "other");
    queue.run();
    expect([engine.promptTokens, engine.cachedTokens]).toEqual([410, 110 + 50]);
  });

  test("knows nothing any more of an owner that is forgotten", () => {
    const { queue, engine, call } = setup();
    call(1, 100, 10);
    queue.at(500, () => engine.forget(1));
    call(1, 150, 10, 1_000);
    queue.run();
    expect(engine.cachedTokens).toBe(0);
  });

  test("throws out the longest unused of its memory, the end of a prefix first", () => {
    const { queue, engine, call } = setup();
    call(1, 400, 10);
    call(2, 400, 10, 1_000);
    call(3, 390, 10, 2_000);
    // 410, 410 and 400 tokens are 220 more than the memory has.
    call(1, 420, 0, 3_000);
    queue.run();
    expect(engine.cachedTokens).toBe(410 - 220);
    expect(engine.kvUse).toBe(0);
  });

  test("lets requests in while their prompts fit and the batch has a place", () => {
    const memory = setup({ prefillTokensPerS: 1e9 });
    for (const owner of [1, 2, 3]) memory.call(owner, 400, 10);
    memory.queue.run();
    expect(memory.endsMs).toEqual({ 1: 100, 2: 100, 3: 200 });
    const batch = setup({ prefillTokensPerS: 1e9, maxBatch: 2 });
    for (const owner of [1, 2, 3]) batch.call(owner, 10, 10);
    batch.queue.run();
    expect(batch.endsMs).toEqual({ 1: 100, 2: 100, 3: 200 });
  });

  test("throws the youngest out where contexts outgrow the memory, and goes on with it later", () => {
    const { queue, engine, call, endsMs } = setup({ prefillTokensPerS: 1e9 });
    call(1, 400, 120);
    call(2, 400, 120);
    queue.run();
    // They fill the memory after 100 steps; the youngest makes its last 20 when the eldest is done.
    expect(endsMs).toEqual({ 1: 1_200, 2: 1_400 });
    expect(engine.preemptions).toBe(1);
  });
});

import { expect, test } from "bun:test";
import { Batch, type Performance } from "../../src/simulator/batch.ts";
import { KvCache } from "../../src/simulator/kv-cache.ts";
import { waitFor } from "../support/wait-for.ts";

const AT_ONCE: Performance = {
  prefillTokensPerS: Number.POSITIVE_INFINITY,
  msPerToken: 0,
  msPerTokenPerRequest: 0,
  maxBatch: Number.POSITIVE_INFINITY,
};

function setup(performance: Partial<Performance> = {}, kvTokens = 16_000) {
  const batch = new Batch({ ...AT_ONCE, ...performance }, new KvCache(kvTokens));
  let from = 0;
  const run = (output: number, prompt = 16, signal = new AbortController().signal) => {
    const promptIds = Array.from({ length: prompt }, () => from++);
    return batch.run({ promptIds, outputIds: Array(output).fill(1), salt: "", signal });
  };
  return { batch, run };
}

async function timed(work: Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work;
  return performance.now() - startMs;
}

test("without times a request is done at once", async () => {
  const { run } = setup();
  expect(await run(1_000)).toEqual({
    cachedTokens: 0,
    generated: 1_000,
    queueMs: expect.any(Number),
    marks: [],
  });
});

test("a request takes its prefill and a step for each of its tokens", async () => {
  const { run } = setup({ prefillTokensPerS: 10_000, msPerToken: 2 });
  const ms = await timed(run(40, 400));
  expect(ms).toBeGreaterThan(119);
});

test("requests decode together, each step longer the more they are", async () => {
  const { run } = setup({ msPerToken: 2, msPerTokenPerRequest: 1 });
  const ms = await timed(Promise.all([run(30), run(30), run(30)]));
  expect(ms).toBeWithin(119, 340);
});

test("a short request leaves, and those that stay are faster from then on", async () => {
  const { run } = setup({ msPerToken: 1, msPerTokenPerRequest: 3 });
  const long = timed(run(60));
  const short = timed(run(10));
  expect(await short).toBeGreaterThan(39);
  expect(await long).toBeWithin(89, 220);
});

test("prefills wait for each other", async () => {
  const { run } = setup({ prefillTokensPerS: 10_000 });
  const ms = await timed(Promise.all([run(1, 500), run(1, 500)]));
  expect(ms).toBeGreaterThan(99);
});

test("a full batch makes further requests wait, in their order", async () => {
  const { batch, run } = setup({ msPerToken: 1, maxBatch: 1 });
  const order: number[] = [];
  const all = [0, 1, 2].map((n) => run(10).finally(() => order.push(n)));
  expect([batch.running, batch.waiting]).toEqual([1, 2]);
  const [first, , third] = await Promise.all(all);
  expect(order).toEqual([0, 1, 2]);
  expect(first?.queueMs).toBeLessThan(third?.queueMs ?? 0);
  expect(third?.queueMs).toBeGreaterThan(18);
});

test("full memory makes further requests wait", async () => {
  const { batch, run } = setup({ msPerToken: 1 }, 64);
  const both = [run(10, 32), run(10, 32)];
  expect([batch.running, batch.waiting]).toEqual([1, 1]);
  await Promise.all(both);
  expect([batch.running, batch.waiting]).toEqual([0, 0]);
});

test("the youngest is thrown out where contexts outgrow the memory, and loses nothing of what it made", async () => {
  // Both prompts fit, with a block to grow for each; both answers do not.
  const { batch, run } = setup({ msPerToken: 1 }, 8 * 16);
  const ended: string[] = [];
  const elder = run(40, 32).finally(() => ended.push("elder"));
  const younger = run(40, 32).finally(() => ended.push("younger"));
  expect([batch.running, batch.waiting]).toEqual([2, 0]);
  expect((await elder).generated).toBe(40);
  expect((await younger).generated).toBe(40);
  expect(batch.preemptions).toBeGreaterThan(0);
  expect([ended, batch.running, batch.waiting]).toEqual([["elder", "younger"], 0, 0]);
});

test("a caller that leaves while its request is thrown out gets what it had made", async () => {
  const { batch, run } = setup({ msPerToken: 2 }, 8 * 16);
  const abort = new AbortController();
  const elder = run(60, 32);
  const younger = run(60, 32, abort.signal);
  await waitFor(() => batch.preemptions > 0 && batch.waiting === 1, "the younger to be thrown out");
  abort.abort();
  expect((await younger).generated).toBeWithin(1, 60);
  expect((await elder).generated).toBe(60);
  expect([batch.running, batch.waiting]).toEqual([0, 0]);
});

test("a caller that leaves frees its place, wherever it was, with what there is", async () => {
  const { batch, run } = setup({ msPerToken: 10, maxBatch: 1 });
  const [decoding, waiting] = [new AbortController(), new AbortController()];
  const first = run(1_000, 16, decoding.signal);
  const second = run(1_000, 16, waiting.signal);
  const third = run(2);
  waiting.abort();
  expect((await second).generated).toBe(0);
  decoding.abort();
  expect((await first).generated).toBeLessThan(1_000);
  expect((await third).generated).toBe(2);
  expect([batch.running, batch.waiting]).toEqual([0, 0]);
});

test("weights that change are marked where they changed, for requests that run", async () => {
  const { batch, run } = setup({ msPerToken: 2 });
  const first = run(20);
  const short = run(5);
  await short;
  batch.mark("v1");
  const { marks } = await first;
  expect(marks).toEqual([{ version: "v1", end: expect.any(Number) }]);
  expect(marks[0]?.end).toBeWithin(5, 20);
});

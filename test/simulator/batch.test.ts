import { expect, test } from "bun:test";
import { Batch } from "../../src/simulator/batch.ts";
import { workOf } from "../../src/simulator/batch-request.ts";
import { type EngineModel, INSTANT } from "../../src/simulator/engine-model.ts";
import { KvCache } from "../../src/simulator/kv-cache.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

function setup(model: Partial<EngineModel> = {}, kvTokens = 16_000) {
  const clock = new VirtualClock();
  const batch = new Batch({ ...INSTANT, ...model }, new KvCache(kvTokens), clock);
  let from = 0;
  const run = (output: number, prompt = 16, signal = new AbortController().signal) => {
    const promptIds = Array.from({ length: prompt }, () => from++);
    return batch.run(workOf(promptIds, Array(output).fill(1), ""), signal);
  };
  /** When each is done. */
  const times = (all: Promise<unknown>[]) =>
    clock.play(Promise.all(all.map((one) => one.then(() => clock.nowMs()))));
  return { batch, clock, run, times };
}

test("without times a request is done at once", async () => {
  const { run } = setup();
  const done = { cachedTokens: 0, generated: 1_000, queueMs: 0, marks: [] };
  expect(await run(1_000)).toEqual(done);
});

test("a request takes its prefill and a step for each of its tokens", async () => {
  const { run, times } = setup({ prefillTokensPerS: 10_000, weightsMs: 2 });
  expect(await times([run(40, 400)])).toEqual([40 + 80]);
});

test("requests decode together, each step longer the longer their contexts are", async () => {
  const { run, times } = setup({ weightsMs: 2, contextMs: 0.01 });
  const [together] = await times([run(30, 100), run(30, 200), run(30, 300)]);
  // 600 tokens at first, and three more each step.
  expect(together).toBeCloseTo(30 * 2 + 0.01 * (30 * 600 + (3 * 30 * 30) / 2));
});

test("a short request leaves, and those that stay are faster from then on", async () => {
  const { run, times } = setup({ weightsMs: 1, contextMs: 0.01 });
  const [long, short] = await times([run(60, 100), run(10, 300)]);
  expect(short).toBeCloseTo(10 + 0.01 * (10 * 400 + (2 * 10 * 10) / 2));
  expect(long).toBeCloseTo(Number(short) + 50 + 0.01 * (50 * 110 + (50 * 50) / 2));
});

test("prompts are computed one after another, and nothing decodes meanwhile", async () => {
  const { run, times, clock } = setup({ prefillTokensPerS: 10_000, weightsMs: 1 });
  const first = run(20, 100);
  const later = clock.sleep(20).then(() => run(5, 500));
  // The first has made ten tokens when the second comes, and stands still for 50 ms.
  expect(await times([first, later])).toEqual([10 + 10 + 50 + 10, 20 + 50 + 5]);
  const { run: again, times: timesAgain } = setup({ prefillTokensPerS: 10_000 });
  expect(await timesAgain([again(1, 500), again(1, 500)])).toEqual([100, 100]);
});

test("siblings that come together compute what they share once, and hold it once", async () => {
  const { batch, times } = setup({ prefillTokensPerS: 10_000 }, 960);
  const { signal } = new AbortController();
  const shared = Array.from({ length: 400 }, (_, at) => at);
  const all = [1, 2, 3, 4].map((own) => {
    return batch.run(workOf([...shared, ...Array(100).fill(1_000 + own)], [1], ""), signal);
  });
  // 400 and four times 100 fit with some room to grow, and four times 500 would not.
  expect([batch.running, batch.kvUse]).toEqual([4, (25 + 4 * 7) / 60]);
  expect(await times(all)).toEqual([80, 80, 80, 80]);
  expect((await Promise.all(all)).map(({ cachedTokens }) => cachedTokens)).toEqual([
    0, 400, 400, 400,
  ]);
});

test("a prompt whose caller left before it was computed is not found", async () => {
  const { batch, clock, times } = setup({ prefillTokensPerS: 10_000 });
  const work = workOf(Array(400).fill(7), [1], "");
  const leaving = new AbortController();
  const first = batch.run(work, leaving.signal);
  await times([first, clock.sleep(10).then(() => leaving.abort())]);
  const second = batch.run(work, new AbortController().signal);
  expect(await times([second])).toEqual([10 + 40]);
  expect((await second).cachedTokens).toBe(0);
});

test("a full batch makes further requests wait, in their order", async () => {
  const { batch, run, times, clock } = setup({ weightsMs: 1, maxBatch: 1 });
  const all = [run(10), run(10), run(10)];
  expect([batch.running, batch.waiting]).toEqual([1, 2]);
  expect(await times(all)).toEqual([10, 20, 30]);
  const waited = (await clock.play(Promise.all(all))).map(({ queueMs }) => queueMs);
  expect(waited).toEqual([0, 10, 20]);
});

test("full memory makes further requests wait", async () => {
  const { batch, run, times } = setup({ weightsMs: 1 }, 64);
  const both = [run(10, 32), run(10, 32)];
  expect([batch.running, batch.waiting]).toEqual([1, 1]);
  expect(await times(both)).toEqual([10, 20]);
  expect([batch.running, batch.waiting]).toEqual([0, 0]);
});

test("the youngest is thrown out where contexts outgrow the memory, and loses nothing of what it made", async () => {
  // Both prompts fit, with a block to grow for each; both answers do not.
  const { batch, run, times } = setup({ weightsMs: 1, prefillTokensPerS: 10_000 }, 8 * 16);
  const both = [run(40, 32), run(40, 32)];
  expect([batch.running, batch.waiting]).toEqual([2, 0]);
  const [elder, younger] = await times(both);
  expect(batch.preemptions).toBe(1);
  // Both prompts, 33 steps together, then the elder alone; its blocks are needed, so the younger computes
  // what was evicted of its own 64 tokens again.
  expect(elder).toBeCloseTo(3.2 + 3.2 + 40);
  expect(younger).toBeWithin(Number(elder) + 8, Number(elder) + 8 + 6.4);
  expect((await Promise.all(both)).map(({ generated }) => generated)).toEqual([40, 40]);
  expect([batch.running, batch.waiting]).toEqual([0, 0]);
});

test("a caller that leaves while its request is thrown out gets what it had made", async () => {
  const { batch, run, times, clock } = setup({ weightsMs: 2 }, 8 * 16);
  const abort = new AbortController();
  const elder = run(60, 32);
  const younger = run(60, 32, abort.signal);
  const leaving = clock.sleep(80).then(() => {
    expect([batch.preemptions, batch.waiting]).toEqual([1, 1]);
    abort.abort();
  });
  await times([elder, younger, leaving]);
  expect((await younger).generated).toBe(33);
  expect((await elder).generated).toBe(60);
  expect([batch.running, batch.waiting]).toEqual([0, 0]);
});

test("a caller that leaves frees its place, wherever it was, with what there is", async () => {
  const { batch, run, times, clock } = setup({ weightsMs: 10, maxBatch: 1 });
  const [decoding, waiting] = [new AbortController(), new AbortController()];
  const first = run(1_000, 16, decoding.signal);
  const second = run(1_000, 16, waiting.signal);
  const third = run(2);
  waiting.abort();
  expect((await second).generated).toBe(0);
  const leaving = clock.sleep(95).then(() => decoding.abort());
  expect(await times([leaving, first, third])).toEqual([95, 95, 115]);
  expect((await first).generated).toBe(9);
  expect([batch.running, batch.waiting]).toEqual([0, 0]);
});

test("who comes too late to leave costs nobody anything", async () => {
  const { batch, run } = setup({ weightsMs: 10 });
  expect((await run(1_000, 16, AbortSignal.abort())).generated).toBe(0);
  expect([batch.running, batch.waiting]).toEqual([0, 0]);
});

test("what is paused stands still, and goes on where it was", async () => {
  const { batch, run, times, clock } = setup({ weightsMs: 1 });
  const pauses = clock.sleep(10).then(async () => {
    batch.pause(true);
    await clock.sleep(100);
    batch.resume();
  });
  expect(await times([run(30), pauses])).toEqual([130, 110]);
});

test("weights that change are marked where they changed, for requests that run", async () => {
  const { batch, run, times, clock } = setup({ weightsMs: 2 });
  const first = run(20);
  const marking = clock.sleep(13).then(() => batch.mark("v1"));
  await times([first, marking]);
  expect((await first).marks).toEqual([{ version: "v1", end: 6 }]);
});

test("who streams is told of its tokens while they are made", async () => {
  const { batch, times } = setup({ weightsMs: 20 });
  const told: number[] = [];
  const { signal } = new AbortController();
  const onProgress = (made: number) => told.push(made);
  await times([batch.run({ ...workOf([1], Array(4).fill(1), ""), onProgress }, signal)]);
  expect(told).toEqual([1, 2, 3]);
});

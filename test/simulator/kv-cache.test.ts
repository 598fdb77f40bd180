import { expect, test } from "bun:test";
import { KvCache, prefixOf } from "../../src/simulator/kv-cache.ts";
import { BLOCK_TOKENS } from "../../src/simulator/kv-memory.ts";

const BLOCKS = 8;

const ids = (length: number, from = 0) => Array.from({ length }, (_, index) => from + index);

/** A cache of eight blocks, and one request that begins and ends in it. */
function setup() {
  const cache = new KvCache(BLOCKS * BLOCK_TOKENS);
  const serve = (promptIds: number[], salt = "") => {
    const lease = cache.reserve(prefixOf(promptIds, salt));
    if (!lease) throw new Error("no room");
    cache.release(lease, prefixOf(promptIds, salt));
    return lease.cachedTokens;
  };
  /** Room for a prompt, and for what is to come behind it. */
  const reserve = (promptIds: number[], tokens = promptIds.length) => {
    const lease = cache.reserve(prefixOf(promptIds, ""));
    return lease && cache.grow(lease, tokens) ? lease : null;
  };
  return { cache, serve, reserve };
}

test("a prompt that was there finds its full blocks, but its last token is computed", () => {
  const { serve } = setup();
  expect(serve(ids(40))).toBe(0);
  expect(serve(ids(40))).toBe(32);
  expect(serve(ids(33))).toBe(32);
  expect(serve(ids(32))).toBe(16);
});

test("a prefix is found up to where it differs", () => {
  const { serve } = setup();
  serve(ids(64));
  expect(serve([...ids(32), ...ids(32, 1_000)])).toBe(32);
  expect(serve([7, ...ids(63, 1)])).toBe(0);
});

test("a salt keeps prefixes apart", () => {
  const { serve } = setup();
  serve(ids(32), "a");
  expect(serve(ids(32), "b")).toBe(0);
  expect(serve(ids(32), "a")).toBe(16);
});

test("what a request sampled is found by the next one", () => {
  const { cache, serve, reserve } = setup();
  const lease = reserve(ids(16), 40);
  if (lease) cache.release(lease, prefixOf(ids(40), ""));
  expect(serve(ids(48))).toBe(32);
});

test("the longest unused is evicted first, and a prefix from its end", () => {
  const { serve } = setup();
  serve(ids(64, 0));
  serve(ids(64, 1_000));
  serve(ids(32, 2_000));
  expect(serve(ids(33, 0))).toBe(32);
  expect(serve(ids(64, 1_000))).toBe(48);
});

test("requests that run are never evicted, and further ones find no room", () => {
  const { cache, reserve } = setup();
  const first = reserve(ids(64), 96);
  expect(cache.usage).toBe(6 / BLOCKS);
  expect(reserve(ids(48, 1_000))).toBeNull();
  expect(cache.usage).toBe(6 / BLOCKS);
  if (first) cache.release(first, null);
  expect(cache.usage).toBe(0);
  expect(reserve(ids(48, 1_000))?.cachedTokens).toBe(0);
});

test("a request that finds no room leaves the order of eviction as it was", () => {
  const { cache, serve, reserve } = setup();
  serve(ids(48));
  const runs = reserve(ids(80, 1_000));
  for (let attempt = 0; attempt < 3; attempt++) {
    expect(cache.reserve(prefixOf(ids(64), ""), 8)).toBeNull();
  }
  if (runs) expect(cache.grow(runs, 96)).toBe(true);
  if (runs) cache.release(runs, null);
  // Of the three blocks the last one went, so the two before are of use still.
  expect(reserve(ids(33))?.cachedTokens).toBe(32);
});

test("siblings share a prompt once it was computed, and its room is counted once", () => {
  const { cache, reserve } = setup();
  const first = reserve(ids(64), 80);
  if (first) cache.share(first);
  const second = reserve(ids(64), 80);
  expect(second?.cachedTokens).toBe(48);
  expect(cache.usage).toBe(7 / BLOCKS);
  for (const lease of [first, second]) if (lease) cache.release(lease, prefixOf(ids(80), ""));
  expect(cache.usage).toBe(0);
});

test("what was not computed is found by nobody, but by those who wait for it", () => {
  const { cache, reserve } = setup();
  const first = reserve(ids(48));
  if (first) cache.share(first);
  const second = reserve([...ids(32), 7]);
  expect(second?.cachedTokens).toBe(32);
  if (first) cache.release(first, null);
  if (second) cache.release(second, prefixOf([...ids(32), 7], ""));
  expect(reserve(ids(49))?.cachedTokens).toBe(32);
});

test("a flush forgets what nobody uses", () => {
  const { cache, serve } = setup();
  serve(ids(64));
  cache.flush();
  expect(serve(ids(64))).toBe(0);
});

test("any order of requests leaves the memory as empty as it was", () => {
  const { cache } = setup();
  const open: { lease: NonNullable<ReturnType<KvCache["reserve"]>>; prompt: number[] }[] = [];
  let seed = 1;
  const next = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((seed / 2 ** 31) * below);
  };
  for (let step = 0; step < 2_000; step++) {
    if (next(2) === 0) {
      const prompt = ids(1 + next(100), next(3) * 1_000);
      const lease = cache.reserve(prefixOf(prompt, ""));
      if (lease) cache.grow(lease, prompt.length + next(20));
      if (lease && next(2) === 0) cache.share(lease);
      if (lease) open.push({ lease, prompt });
    } else {
      const [ended] = open.splice(next(open.length), 1);
      if (ended) cache.release(ended.lease, next(2) === 0 ? prefixOf(ended.prompt, "") : null);
    }
    expect(cache.usage).toBeWithin(0, 1.000001);
  }
  for (const { lease, prompt } of open) cache.release(lease, prefixOf(prompt, ""));
  expect(cache.usage).toBe(0);
});

import { expect, test } from "bun:test";
import { type Known, KnownMemory, type Tenancy } from "../../../bench/balance/known-memory.ts";
import { KvCache, type Lease, prefixOf } from "../../../src/simulator/kv-cache.ts";
import { BLOCK_TOKENS } from "../../../src/simulator/kv-memory.ts";
import { uniform } from "../../../src/simulator/random.ts";

const BLOCKS = 200;

/** Ids such that siblings share their first prompt, and nothing else is alike. */
function prefix({ owner, group, tokens, sharedTokens }: Known) {
  const from = (at: number) => (at < sharedTokens ? Number(group) : 100 + owner) * 10_000 + at;
  return prefixOf(
    Array.from({ length: tokens }, (_, at) => from(at)),
    "",
  );
}

type Open = { known: Known; counted: Tenancy; hashed: Lease };

test("a memory that counts blocks holds, finds and throws out what one does that hashes them", () => {
  const counting = new KnownMemory(BLOCKS * BLOCK_TOKENS);
  const hashing = new KvCache(BLOCKS * BLOCK_TOKENS);
  const open: Open[] = [];
  const owners = Array.from({ length: 12 }, (_, owner) => owner);
  const contexts = new Map<number, number>();
  const draw = (step: number, what: number, below: number) =>
    Math.floor(uniform(step, what) * below);
  let refused = 0;
  let found = 0;
  const begin = (step: number) => {
    const owner = owners[draw(step, 2, owners.length)] as number;
    if (open.some(({ known }) => known.owner === owner)) return;
    // None of them ends where a block does: how often a block is held twice is no part of what is compared.
    const tokens = contexts.get(owner) ?? 405;
    const known = { owner, group: `${owner % 3}`, tokens, sharedTokens: 405 };
    const headroom = draw(step, 3, 4);
    const counted = counting.reserve(known, headroom);
    const hashed = hashing.reserve(prefix(known), headroom);
    expect(counted?.cachedTokens).toBe(hashed?.cachedTokens);
    if (!counted || !hashed) {
      refused++;
      return;
    }
    found += counted.cachedTokens;
    counting.share(counted);
    hashing.share(hashed);
    open.push({ known, counted, hashed });
  };
  const end = (step: number) => {
    const [ended] = open.splice(draw(step, 4, open.length), 1);
    if (!ended) return;
    const { known, counted, hashed } = ended;
    const isComputed = draw(step, 5, 10) > 0;
    const tokens = known.tokens + 16 * draw(step, 6, 12) + 1 + draw(step, 7, 14);
    const made = { ...known, tokens: tokens % BLOCK_TOKENS === 0 ? tokens + 1 : tokens };
    const grows = counting.grow(counted, made.tokens);
    expect(hashing.grow(hashed, made.tokens)).toBe(grows);
    const computed = isComputed ? (grows ? made : known) : null;
    counting.release(counted, computed);
    hashing.release(hashed, computed && prefix(computed));
    contexts.set(known.owner, (computed ?? known).tokens);
    // It is over, and another begins.
    if (made.tokens > 1_500) owners[owners.indexOf(known.owner)] = 100 + step;
  };
  for (let step = 0; step < 3_000; step++) {
    if (uniform(step, 1) < 0.5) begin(step);
    else end(step);
    expect(counting.usage).toBeCloseTo(hashing.usage, 10);
    expect(counting.availableBlocks).toBe(hashing.availableBlocks);
  }
  expect(refused).toBeGreaterThan(50);
  expect(found).toBeGreaterThan(100_000);
});

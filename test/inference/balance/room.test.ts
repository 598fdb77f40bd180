import { describe, expect, test } from "bun:test";
import { hasRoom, held } from "../../../src/inference/balance/room.ts";
import { uniform } from "../../../src/simulator/random.ts";

describe("a backend takes on a trajectory", () => {
  const growing = (contextTokens: number, growthTokens: number, group: string | null = null) => {
    return { contextTokens, growthTokens, firstContext: contextTokens, group };
  };

  test("while what lives there comes to at most twice its memory at once", () => {
    const room = (count: number) =>
      hasRoom(100_000, Array(count).fill(growing(1_000, 9_000)), growing(1_000, 9_000));
    expect([room(19), room(20)]).toEqual([true, false]);
  });

  test("with siblings, of whose first prompt it has room for once", () => {
    const room = (count: number, group: string | null) => {
      const living = Array(count).fill(growing(10_000, 10_000, "g"));
      return hasRoom(100_000, living, growing(10_000, 10_000, group));
    };
    // 10,000 and 18 times 10,000 are less than 200,000, as ten times 20,000 are.
    expect([room(18, "g"), room(19, "g")]).toEqual([true, false]);
    expect([room(17, null), room(18, null)]).toEqual([true, false]);
  });

  test("in the place of those that will be over before it is long", () => {
    const room = (growthTokens: number) =>
      hasRoom(100_000, Array(19).fill(growing(9_900, growthTokens)), growing(1_000, 90_000));
    expect([room(100), room(9_000)]).toEqual([true, false]);
  });

  test("that is larger than its memory, where it has none", () => {
    expect(hasRoom(1_000, [], growing(1_000, 9_000))).toBe(true);
  });
});

describe("memory that contexts have outgrown", () => {
  const resident = (name: string, contextTokens: number, sampledTokens = 0) => {
    const alone = { firstContext: 0, group: null as string | null };
    return { name, contextTokens, sampledTokens, ...alone, isOut: false, waitedMs: 0 };
  };
  const elder = resident("elder", 50_000, 12_000);
  const middle = resident("middle", 40_000, 8_000);
  const younger = resident("younger", 10_000, 2_000);
  const last = resident("last", 1_000, 100);
  const all = [elder, middle, younger, last];
  const inside = (residents: typeof all, moreToCome: boolean, kvTokens = 100_000) =>
    [...held(kvTokens, residents, moreToCome)].map(({ name }) => name);

  test("holds the eldest while more are to begin, and not a younger one that would fit", () => {
    expect(inside(all, true)).toEqual(["elder", "middle"]);
  });

  test("holds those that have sampled least when no more are to begin", () => {
    expect(inside(all, false)).toEqual(["last", "younger", "middle"]);
  });

  test("takes one in that is out only where it is far behind", () => {
    const out = (sampledTokens: number) => [
      elder,
      middle,
      { ...resident("out", 10_000, sampledTokens), isOut: true },
    ];
    // Its context is 10,000, and the two others have sampled 8,000 and 12,000.
    expect(inside(out(0), false)).toEqual(["middle", "out"]);
    expect(inside(out(2_001), false)).toEqual(["middle", "elder"]);
  });

  test("holds first who has waited for minutes in all, the eldest of them first", () => {
    const starved = all.map((one) => ({ ...one, waitedMs: one === last ? 0 : 900_000 }));
    expect(inside(starved, false)).toEqual(["elder", "middle"]);
    const one = [{ ...elder, waitedMs: 900_000 }, middle, younger, last];
    expect(inside(one, false)).toEqual(["elder", "last", "younger"]);
  });

  test("holds the first even where that is larger than all", () => {
    expect(inside(all, true, 1_000)).toEqual(["elder"]);
    expect(inside([elder], false, 1_000)).toEqual(["elder"]);
  });

  test("holds the first prompt of siblings once", () => {
    const of = (group: (name: string) => string) =>
      all.map((one) => {
        return { ...one, contextTokens: 35_000, firstContext: 10_000, group: group(one.name) };
      });
    // Of 35,000 a sibling adds 25,000.
    expect(
      inside(
        of(() => "g"),
        true,
      ),
    ).toEqual(["elder", "middle", "younger"]);
    expect(
      inside(
        of((name) => name),
        true,
      ),
    ).toEqual(["elder", "middle"]);
  });

  test("starves nobody, however many come after", () => {
    // The minutes that are allowed, and then all that those have to do that were there before.
    const mostMs = 900_000 + (LIVING - 1) * LONGEST * LOOK_MS;
    for (let seed = 0; seed < 40; seed++) {
      const longestMs = longestWaitMs(seed);
      if (longestMs > mostMs) throw new Error(`seed ${seed}: ${longestMs} ms`);
    }
  });
});

const LOOK_MS = 10_000;
const LIVING = 6;
/** Turns. */
const LONGEST = 40;

/**
 * Two hours in which rollouts keep coming to a memory that is too small for them.
 * Returns the longest time that one has waited. Units: milliseconds.
 */
function longestWaitMs(seed: number): number {
  type One = Parameters<typeof held>[1][number] & { ends: number };
  const living: One[] = [];
  let longestMs = 0;
  for (let look = 0; look < 720; look++) {
    // Most are short, so that there are always some that have sampled less than a long one.
    for (let place = living.length; place < LIVING; place++) {
      const ends = 1 + Math.floor(uniform(seed, 2, look, place) ** 6 * LONGEST);
      const begun = { contextTokens: 4_000, firstContext: 4_000, group: null, sampledTokens: 0 };
      living.push({ ...begun, isOut: false, waitedMs: 0, ends });
    }
    const inside = held(30_000, living, uniform(seed, 3, look) < 0.1);
    for (const one of [...living]) {
      one.isOut = !inside.has(one);
      if (one.isOut) one.waitedMs += LOOK_MS;
      else {
        one.sampledTokens += 300;
        one.contextTokens += 900;
        one.ends--;
      }
      longestMs = Math.max(longestMs, one.waitedMs);
      if (one.ends === 0) living.splice(living.indexOf(one), 1);
    }
  }
  return longestMs;
}

import { describe, expect, test } from "bun:test";
import { hasRoom, isHeld } from "../../../src/inference/balance/room.ts";

describe("a backend takes on a trajectory", () => {
  const growing = (contextTokens: number, growthTokens: number) => ({
    contextTokens,
    growthTokens,
  });

  test("while what lives there comes to at most one and a half times its memory at once", () => {
    const room = (count: number) =>
      hasRoom(100_000, Array(count).fill(growing(1_000, 9_000)), growing(1_000, 9_000));
    expect([room(14), room(15)]).toEqual([true, false]);
  });

  test("in the place of those that will be over before it is long", () => {
    const room = (growthTokens: number) =>
      hasRoom(100_000, Array(14).fill(growing(9_900, growthTokens)), growing(1_000, 90_000));
    expect([room(100), room(9_000)]).toEqual([true, false]);
  });

  test("that is larger than its memory, where it has none", () => {
    expect(hasRoom(1_000, [], growing(1_000, 9_000))).toBe(true);
  });
});

describe("memory that contexts have outgrown", () => {
  const contexts = [50_000, 40_000, 10_000, 1_000].map((contextTokens, index) => {
    return { contextTokens, isAlone: index === 1 };
  });
  const held = (isLeftAlone: (one: { isAlone: boolean }) => boolean) =>
    contexts.map((one) => isHeld(100_000, contexts, one, isLeftAlone));

  test("holds the eldest, and lets the younger ones wait, also those that would fit", () => {
    expect(held(() => false)).toEqual([true, true, false, false]);
  });

  test("is not kept for one that is left alone, which comes back in its order", () => {
    expect(held(({ isAlone }) => isAlone)).toEqual([true, true, true, true]);
  });

  test("holds the eldest even where that is larger than all", () => {
    const [eldest] = contexts;
    if (eldest) expect(isHeld(1_000, contexts, eldest, () => false)).toBe(true);
  });
});

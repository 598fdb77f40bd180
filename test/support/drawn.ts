import { randomFrom } from "./random.ts";

export type Random = {
  pick<T>(of: readonly T[]): T;
  /** From 0 to `below - 1`. */
  below(below: number): number;
  chance(share: number): boolean;
};

/**
 * Plays a property on drawn cases. The seed of the one that fails is printed; `ROLLOUTD_TEST_SEED` plays it alone, and
 * `ROLLOUTD_TEST_CASES` plays so many.
 */
export async function drawn(
  cases: number,
  property: (random: Random) => unknown | Promise<unknown>,
): Promise<void> {
  const { ROLLOUTD_TEST_SEED: only, ROLLOUTD_TEST_CASES: asked } = process.env;
  const first = only === undefined ? 0 : Number(only);
  const count = only === undefined ? Number(asked ?? cases) : 1;
  for (let seed = first; seed < first + count; seed++) {
    try {
      await property(randomOf(seed));
    } catch (error) {
      console.error(`ROLLOUTD_TEST_SEED=${seed} plays this again`);
      throw error;
    }
  }
}

function randomOf(seed: number): Random {
  const next = randomFrom(seed);
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    below,
    chance: (share) => next() < share,
    pick: (of) => of[below(of.length)] as (typeof of)[number],
  };
}

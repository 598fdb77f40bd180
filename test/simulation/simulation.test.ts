import { expect, test } from "bun:test";
import { Schedule } from "./schedule.ts";

const SEEDS = Number(process.env.ROLLOUTD_TEST_SEEDS ?? 25);
/** A seed of its own by `ROLLOUTD_TEST_SEED`, to see a failure again. */
const ONLY = process.env.ROLLOUTD_TEST_SEED;

/** Seeds that once failed. */
const KEPT: number[] = [];

test(`P2, P3, P4, P6: ${SEEDS} schedules of faults lose no job, end none twice and leave no sandbox`, async () => {
  const first = 1 + Math.floor(Date.now() / 1000) * 1000;
  const drawn = Array.from({ length: SEEDS }, (_, index) => first + index);
  const failed: string[] = [];
  for (const seed of ONLY ? [Number(ONLY)] : [...KEPT, ...drawn]) {
    using schedule = new Schedule(seed);
    await schedule
      .run()
      .catch((error) => failed.push(`ROLLOUTD_TEST_SEED=${seed}: ${error.stack}`));
    if (failed.length > 0) break;
  }
  expect(failed).toEqual([]);
}, 3_600_000);

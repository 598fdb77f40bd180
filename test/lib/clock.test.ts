import { expect, setSystemTime, test } from "bun:test";
import { systemClock } from "../../src/lib/clock.ts";

test("the clock tells whole milliseconds since the epoch", () => {
  const nowMs = systemClock().nowMs();
  expect(Number.isInteger(nowMs)).toBe(true);
  expect(Math.abs(nowMs - Date.now())).toBeLessThan(1000);
});

test("the clock does not run backwards when the system's is set back, nor ahead with it", () => {
  const clock = systemClock();
  const before = clock.nowMs();
  using _ = { [Symbol.dispose]: () => setSystemTime() };
  for (const year of [2001, 2101]) {
    setSystemTime(new Date(`${year}-01-01`));
    const passedMs = clock.nowMs() - before;
    expect(passedMs).toBeGreaterThanOrEqual(0);
    expect(passedMs).toBeLessThan(60_000);
  }
});

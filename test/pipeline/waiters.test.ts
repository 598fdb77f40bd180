import { describe, expect, test } from "bun:test";
import { Waiters } from "../../src/pipeline/waiters.ts";

const LONG = 600_000;
const NEVER = new AbortController().signal;

/** Whether each wait is over by now, and how it ended. */
async function settled(...waits: Promise<boolean>[]): Promise<(boolean | "waiting")[]> {
  await new Promise(setImmediate);
  return await Promise.all(
    waits.map((wait) => Promise.race([wait, Promise.resolve("waiting" as const)])),
  );
}

describe("a request that waits", () => {
  test("for a job hears of that job's end, and so does everybody else who waits for it", async () => {
    const waiters = new Waiters();
    const a = [waiters.job("a", LONG, NEVER), waiters.job("a", LONG, NEVER)];
    const b = waiters.job("b", LONG, NEVER);
    waiters.notify("a");
    expect(await settled(...a, b)).toEqual([true, true, "waiting"]);
    waiters.notifyAll();
  });

  test("for any job hears of the next one", async () => {
    const waiters = new Waiters();
    const before = waiters.any(LONG, NEVER);
    waiters.notify("a");
    const after = waiters.any(LONG, NEVER);
    expect(await settled(before, after)).toEqual([true, "waiting"]);
    waiters.notifyAll();
  });

  test("is let go when its time is over", async () => {
    const waiters = new Waiters();
    expect(await Promise.all([waiters.job("a", 1, NEVER), waiters.any(1, NEVER)])).toEqual([
      false,
      false,
    ]);
  });

  test("is let go when its client hangs up, also before it began", async () => {
    const waiters = new Waiters();
    const controller = new AbortController();
    const waits = [waiters.job("a", LONG, controller.signal), waiters.any(LONG, controller.signal)];
    controller.abort();
    waits.push(waiters.job("a", LONG, controller.signal));
    expect(await settled(...waits)).toEqual([false, false, false]);
  });

  test("is not let go by another client that hangs up", async () => {
    const waiters = new Waiters();
    const controller = new AbortController();
    const leaving = waiters.job("a", LONG, controller.signal);
    const staying = waiters.job("a", LONG, NEVER);
    controller.abort();
    expect(await settled(leaving, staying)).toEqual([false, "waiting"]);
    waiters.notify("a");
    expect(await staying).toBe(true);
  });

  test("is let go when the server stops", async () => {
    const waiters = new Waiters();
    const waits = [
      waiters.job("a", LONG, NEVER),
      waiters.job("b", LONG, NEVER),
      waiters.any(LONG, NEVER),
    ];
    waiters.notifyAll();
    expect(await settled(...waits)).not.toContain("waiting");
  });

  test("for a job again, right when it has heard of it, hears of it again", async () => {
    const waiters = new Waiters();
    const first = waiters.job("a", LONG, NEVER);
    waiters.notify("a");
    const second = waiters.job("a", LONG, NEVER);
    await first;
    expect(await settled(second)).toEqual(["waiting"]);
    waiters.notify("a");
    expect(await second).toBe(true);
  });
});

test("an end that nobody waits for is no failure", () => {
  new Waiters().notify("a");
});

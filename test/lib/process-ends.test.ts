import { expect, test } from "bun:test";
import { killProcess, processStartTime } from "../../src/lib/proc.ts";
import { type KnownProcess, processEnds } from "../../src/lib/process-ends.ts";

/** Processes that run for long, killed at the end of scope. */
function sleepers(count: number) {
  const children = Array.from({ length: count }, () => Bun.spawn(["sleep", "600"]));
  const known: KnownProcess[] = children.map(({ pid }) => ({
    pid,
    startTime: processStartTime(pid) as string,
  }));
  return {
    known,
    [Symbol.dispose]() {
      for (const { pid } of known) killProcess(pid);
    },
  };
}

test("who waits is told when all of the processes have ended, and not before", async () => {
  using t = sleepers(2);
  const [first, second] = t.known as [KnownProcess, KnownProcess];
  let over = false;
  const ends = processEnds(t.known, 60_000).finally(() => {
    over = true;
  });
  killProcess(first.pid);
  expect([await processEnds([first], 60_000), over]).toEqual([true, false]);
  killProcess(second.pid);
  expect(await ends).toBe(true);
});

test("one that has ended before, or whose number is another's now, is not waited for", async () => {
  using t = sleepers(1);
  const [{ pid }] = t.known as [KnownProcess];
  expect(await processEnds([{ pid, startTime: "1" }], 60_000)).toBe(true);
});

test("many that hang delay nobody, and each is given up in its time", async () => {
  using hanging = sleepers(40);
  const waits = hanging.known.map((one) => processEnds([one], 500));
  using ending = sleepers(1);
  const end = processEnds(ending.known, 60_000);
  for (const { pid } of ending.known) killProcess(pid);
  expect(await Promise.race([end, ...waits])).toBe(true);
  expect(new Set(await Promise.all(waits))).toEqual(new Set([false]));
});

import { expect, test } from "bun:test";
import { RecordTurns } from "../../src/worker/record-turns.ts";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test("records are written a few in a turn of the event loop, in order, and none in the turn in which they are asked for", async () => {
  const turns = new RecordTurns();
  const written: number[] = [];
  for (let at = 0; at < 20; at++) turns.next().then(() => written.push(at));
  await Promise.resolve();
  const counts = [written.length];
  while (written.length < 20) {
    await nextTurn();
    counts.push(written.length);
  }
  expect(written).toEqual(Array.from({ length: 20 }, (_, at) => at));
  const steps = counts.slice(1).map((count, index) => count - (counts[index] as number));
  expect([counts[0], Math.max(...steps)]).toEqual([0, 8]);
  // Who comes when nobody waits any more has a turn of its own.
  const late = turns.next().then(() => written.push(20));
  expect(written).toHaveLength(20);
  await late;
});

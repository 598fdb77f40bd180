import { isRunning } from "./proc.ts";

/** By its start time it is told from a process that was given its number later. */
export type KnownProcess = { pid: number; startTime: string };

type Waiting = { left: KnownProcess[]; stopMs: number; resolve(ended: boolean): void };

/** Most ends take a few milliseconds, and nobody is told when they are over. */
const REST_MS = 1;
/** After so many that still run a round is over: the next one begins with the others. */
const MAX_RUNNING = 8;

const queue: Waiting[] = [];
let isLooking = false;

/**
 * Resolves when none of `processes`, which were killed, runs any more: with false where that takes longer than
 * `limitMs`. All who wait in a thread share one timer, and its rounds are short however many they are.
 */
export function processEnds(processes: KnownProcess[], limitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    queue.push({ left: [...processes], stopMs: performance.now() + limitMs, resolve });
    if (isLooking) return;
    isLooking = true;
    setTimeout(look, REST_MS);
  });
}

function look(): void {
  let running = 0;
  for (let rest = queue.length; rest > 0 && running < MAX_RUNNING; rest--) {
    const one = queue.shift() as Waiting;
    one.left = one.left.filter(({ pid, startTime }) => isRunning(pid, startTime));
    if (one.left.length === 0) one.resolve(true);
    else if (performance.now() > one.stopMs) one.resolve(false);
    else {
      running++;
      queue.push(one);
    }
  }
  isLooking = queue.length > 0;
  if (isLooking) setTimeout(look, REST_MS);
}

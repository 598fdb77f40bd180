import { transition } from "../jobs/transitions.ts";
import type { Clock } from "../lib/clock.ts";
import { toJob } from "../store/rows.ts";
import type { Store } from "../store/store.ts";
import type { JobHead } from "../store/tables.ts";

/**
 * Takes over from a service that stopped or died. Runs before the scheduler exists, when every sandbox of
 * the predecessor is known to be gone.
 */
export function recoverJobs(
  store: Store,
  clock: Clock,
  maxCrashes: number,
): { resumed: number; ended: number } {
  return store.transaction(() => {
    store.leases.renewAll(clock.nowMs());
    store.leftovers.clampDeadlines(clock.nowMs());
    store.callbacks.allDue(clock.nowMs());
    let resumed = 0;
    let ended = 0;
    const alone = activeJobs(store) === 1;
    for (const row of recoverable(store)) {
      const job = toJob(row);
      const next = transition(job, { type: "recovered", maxCrashes, alone }, clock.nowMs());
      if (next === job) continue;
      store.updateJob(row.seq, job, next);
      if (next.state === "pending") resumed++;
      else ended++;
    }
    return { resumed, ended };
  });
}

/** As the predecessor left them; more than two are not counted. */
function activeJobs(store: Store): number {
  let count = 0;
  for (const row of recoverable(store)) if (row.state === "active" && ++count === 2) break;
  return count;
}

/** Page by page: many jobs with their instances would not be small. */
function* recoverable(store: Store): Generator<JobHead> {
  for (let after = 0; ; ) {
    const rows = store.leftovers.recoverable(after);
    yield* rows;
    const last = rows.at(-1);
    if (!last) return;
    after = last.seq;
  }
}

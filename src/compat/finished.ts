import { ServiceError } from "../errors.ts";
import { isFinal, type State } from "../jobs/job.ts";
import type { Scheduler } from "../pipeline/scheduler.ts";
import type { Store } from "../store/store.ts";
import type { JobRow } from "../store/tables.ts";
import type { Trajectory } from "../trajectory/record.ts";

export type RolloutSource = {
  store: Pick<Store, "jobById" | "trajectory">;
  scheduler: Pick<Scheduler, "draining" | "waiters">;
};

/** How long one look for a rollout's end lasts; only the client's patience ends the wait as a whole. */
const WAIT_MS = 60_000;

/**
 * The finished rollout; null when `signal` aborts before, or the service stops.
 *
 * @throws ServiceError `not_found` for one that does not exist, which would never end
 */
export async function finishedRollout(
  { store, scheduler }: RolloutSource,
  id: string,
  signal: AbortSignal,
): Promise<JobRow | null> {
  for (;;) {
    const row = store.jobById(id);
    if (!row) throw new ServiceError("not_found", `there is no rollout "${id}"`, { field: "id" });
    if (isFinal(row)) return row;
    if (signal.aborted || scheduler.draining) return null;
    await scheduler.waiters.job(id, WAIT_MS, signal);
  }
}

export function storedTrajectory({ store }: RolloutSource, row: JobRow): Trajectory | null {
  const stored = store.trajectory(row.seq);
  return stored && JSON.parse(stored.record.toString());
}

/**
 * Unfinished rollouts that came through one of these APIs, as a predecessor of this service left them. A label alone
 * does not tell: clients of the other APIs choose theirs.
 *
 * @param idPrefix how the API begins the ids that it makes
 */
export function* unfinishedOf(
  { store }: { store: Pick<Store, "list"> },
  api: string,
  idPrefix: string,
) {
  const filter = { labels: { api }, states: ["pending", "active"] as State[], limit: 500 };
  let after = 0;
  for (let more = true; more; ) {
    const page = store.list({ ...filter, after, order: "submitted" });
    yield* page.rows.filter(({ id }) => id.startsWith(idPrefix));
    ({ next: after, more } = page);
  }
}

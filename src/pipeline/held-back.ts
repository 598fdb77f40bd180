import { heldMs, type Job } from "../jobs/job.ts";
import { transition } from "../jobs/transitions.ts";
import type { ActiveJob, SchedulerParts } from "./parts.ts";

type Parts = Pick<SchedulerParts, "backends" | "clock">;

/** When an active job's stage has to be over, if it is not made to wait any more. Null: it has no limit. */
export function stageEndsMs({ job, backendId }: ActiveJob, backends: Parts["backends"]) {
  const { stageDeadlineMs, deadlineMs } = job;
  if (stageDeadlineMs === null || backendId === null) return stageDeadlineMs;
  return Math.min(stageDeadlineMs + backends.waitedMs(job.id) - heldMs(job), deadlineMs);
}

/**
 * The job of an entry, with what its calls have waited by now: for memory, for their turn, for other weights. That is the
 * service's doing, and takes nothing of the time that a rollout has for its work. Not after the backend is released.
 */
export function withWaits({ job, backendId }: ActiveJob, { backends, clock }: Parts): Job {
  if (backendId === null || job.state !== "active") return job;
  return transition(job, { type: "held_back", ms: backends.waitedMs(job.id) }, clock.nowMs());
}

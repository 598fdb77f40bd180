import type { ErrorBody } from "../errors.ts";
import {
  type AttemptFailure,
  type Ending,
  isPaused,
  type Job,
  type Stage,
  type StageTiming,
  type State,
} from "../jobs/job.ts";
import { readLife } from "../jobs/life.ts";
import type { NewRow } from "../store/new-jobs.ts";
import type { JobRow } from "../store/tables.ts";
import type { Outcome } from "../trajectory/record.ts";
import type { Verdict } from "../verifiers/verdict.ts";

type FailureView = { attempt: number; stage: Stage; failed_at: string; error: ErrorBody };
type StageTimes = { queued_ms: number; active_ms: number };

/** A rollout as clients see it. `reward` is null unless EVAL came to a verdict. */
export type RolloutView = {
  id: string;
  task_kind: string;
  stage: Stage;
  state: State;
  attempt: number;
  num_attempts: number;
  /** Attempts that failed and were followed by another one, oldest first. */
  failures: FailureView[];
  /** Waits for another batch to go on with it; no time limit of its own runs. */
  paused: boolean;
  /** Set while an active rollout is being ended. */
  ending: Ending | null;
  reward: number | null;
  verdict: Verdict | null;
  stop_reason: Outcome["stop_reason"] | null;
  final_message: string | null;
  turns: number | null;
  error: (ErrorBody & { stage: Stage }) | null;
  backend_id: string | null;
  /** The rollout whose outcome this one scores again. */
  rescore_of: string | null;
  /** How far its sandbox was kept apart from the node; null where it had none (yet). */
  isolation: "A" | "B" | null;
  /** The most that its sandboxes used, as a watchdog saw it that looks every 30 to 500 ms; null without one. */
  sandbox_peak: { memory_bytes: number; processes: number } | null;
  /** Units: milliseconds; times of attempts before the last are included. */
  timings: Record<Stage, StageTimes>;
  labels: Record<string, string>;
  priority: number;
  /** When it is cancelled unless its lease is renewed; null where it has none. */
  lease_until: string | null;
  created_at: string;
  finished_at: string | null;
};

export function viewRollout(row: JobRow): RolloutView {
  const { numAttempts, failures, timings } = readLife(row.life);
  const outcome = row.outcome === null ? null : (JSON.parse(row.outcome) as Outcome);
  return {
    id: row.id,
    task_kind: row.task_kind,
    stage: row.stage,
    state: row.state,
    attempt: row.attempt,
    num_attempts: numAttempts,
    failures: failures.map(viewFailure),
    paused: isPaused({ state: row.state, notBeforeMs: row.not_before_ms }),
    ending: row.state === "active" ? row.ending : null,
    reward: row.reward,
    verdict: row.verdict === null ? null : JSON.parse(row.verdict),
    stop_reason: outcome?.stop_reason ?? null,
    final_message: outcome?.final_message ?? null,
    turns: outcome?.turns ?? null,
    error: row.error === null ? null : { ...JSON.parse(row.error), stage: row.stage },
    backend_id: row.backend_id,
    rescore_of: row.rescore_of,
    isolation: row.isolation,
    sandbox_peak:
      row.peak_memory_bytes === null
        ? null
        : { memory_bytes: row.peak_memory_bytes, processes: row.peak_processes ?? 0 },
    timings: {
      init: viewTimes(timings.init),
      run: viewTimes(timings.run),
      eval: viewTimes(timings.eval),
    },
    labels: row.labels === null ? {} : JSON.parse(row.labels),
    priority: row.priority,
    lease_until: row.finished_ms === null ? viewTime(row.lease_until_ms) : null,
    created_at: new Date(row.created_ms).toISOString(),
    finished_at: viewTime(row.finished_ms),
  };
}

/** A rollout as it was accepted: what `viewRollout` gives for its row, without reading that back. */
export function viewAccepted(job: Job, row: NewRow): RolloutView {
  const { init, run, eval: evaluation } = job.timings;
  const outcome = row.rescore ? (JSON.parse(row.rescore.outcome) as Outcome) : null;
  return {
    id: job.id,
    task_kind: row.taskKind,
    stage: job.stage,
    state: job.state,
    attempt: job.attempt,
    num_attempts: job.numAttempts,
    failures: [],
    paused: false,
    ending: null,
    reward: null,
    verdict: null,
    stop_reason: outcome?.stop_reason ?? null,
    final_message: outcome?.final_message ?? null,
    turns: outcome?.turns ?? null,
    error: null,
    backend_id: null,
    rescore_of: row.rescore?.of ?? null,
    isolation: null,
    sandbox_peak: null,
    timings: { init: viewTimes(init), run: viewTimes(run), eval: viewTimes(evaluation) },
    labels: row.labels ?? {},
    priority: row.priority ?? 0,
    lease_until: row.leaseMs === undefined ? null : viewTime(job.createdMs + row.leaseMs),
    created_at: new Date(job.createdMs).toISOString(),
    finished_at: null,
  };
}

function viewTimes({ queuedMs, activeMs }: StageTiming): StageTimes {
  return { queued_ms: queuedMs, active_ms: activeMs };
}

function viewTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

function viewFailure({ attempt, stage, atMs, error }: AttemptFailure): FailureView {
  return { attempt, stage, failed_at: new Date(atMs).toISOString(), error };
}

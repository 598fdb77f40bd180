import type { RolloutView } from "../../src/protocol/view.ts";

const NO_TIME = { queued_ms: 0, active_ms: 0 };

/** A rollout as a server shows it: over, with a reward of 1, unless the changes say otherwise. */
export function viewOf(id: string, changes: Partial<RolloutView> = {}): RolloutView {
  return {
    id,
    task_kind: "echo",
    stage: "eval",
    state: "succeeded",
    attempt: 1,
    num_attempts: 1,
    failures: [],
    labels: {},
    priority: 0,
    lease_until: null,
    paused: false,
    ending: null,
    reward: 1,
    verdict: { reward: 1, rule: "echo", reason: "It says so." },
    stop_reason: "done",
    final_message: null,
    turns: 0,
    error: null,
    backend_id: null,
    rescore_of: null,
    isolation: null,
    sandbox_peak: null,
    timings: { init: NO_TIME, run: NO_TIME, eval: NO_TIME },
    created_at: "2026-01-01T00:00:00.000Z",
    finished_at: "2026-01-01T00:00:01.000Z",
    ...changes,
  };
}

/** A rollout that came to no verdict. */
export function failedView(id: string): RolloutView {
  const error = {
    code: "engine_timeout",
    message: "no answer",
    boundary: "engine",
    retryable: true,
    stage: "run",
  } as const;
  return viewOf(id, { stage: "run", state: "failed", reward: null, verdict: null, error });
}

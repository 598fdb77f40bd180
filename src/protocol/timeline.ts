import type { AttemptFailure, Stage, Visit } from "../jobs/job.ts";
import { readLife } from "../jobs/life.ts";
import type { JobRow } from "../store/tables.ts";
import type { ToolStatus, Trajectory, Turn } from "../trajectory/record.ts";

/** Units: milliseconds since the rollout's submission; no end where it goes on, or the service died in it. */
type Span = { attempt: number; stage: Stage; start_ms: number; end_ms: number | null };

/**
 * Within RUN's `work` lie the calls of the model, each after the `wait` for leave to call, and the tools that
 * they asked for. `error` is the code of the failure that ended the work.
 */
export type TimelineSpan =
  | (Span & { kind: "queue" })
  | (Span & { kind: "work"; error: string | null })
  | (Span & { kind: "wait"; turn: number })
  | (Span & {
      kind: "model";
      turn: number;
      backend_id: string;
      /** In the engine before it began, and from the call to the first token; null where nobody knows. */
      queue_ms: number | null;
      first_token_ms: number | null;
    })
  | (Span & { kind: "tool"; turn: number; name: string; status: ToolStatus });

export type TimelineView = {
  id: string;
  created_at: string;
  finished_at: string | null;
  /** In the order of their starts. */
  spans: TimelineSpan[];
};

/**
 * @param trajectory of the rollout's last RUN that recorded something
 * @param past the turns of attempts whose RUN failed
 */
export function viewTimeline(
  row: JobRow,
  trajectory: Pick<Trajectory, "attempt" | "turns"> | null,
  past: { attempt: number; turns: string }[] = [],
): TimelineView {
  const { visits, failures } = readLife(row.life);
  const turnsOf = new Map(past.map(({ attempt, turns }) => [attempt, JSON.parse(turns) as Turn[]]));
  if (trajectory) turnsOf.set(trajectory.attempt, trajectory.turns);
  const spans = visits.flatMap((visit) => {
    const [attempt, stage] = visit;
    const turns = stage === "run" ? (turnsOf.get(attempt) ?? []) : [];
    return [
      ...staySpans(row, failures, visit),
      ...turns.flatMap((turn, at) => turnSpans(visit, turn, at)),
    ];
  });
  spans.push(...lastQueue(row, visits));
  const since = (ms: number) => Math.max(0, Math.round((ms - row.created_ms) * 1000) / 1000);
  return {
    id: row.id,
    created_at: new Date(row.created_ms).toISOString(),
    finished_at: row.finished_ms === null ? null : new Date(row.finished_ms).toISOString(),
    spans: spans.map((span) => ({
      ...span,
      start_ms: since(span.start_ms),
      end_ms: span.end_ms === null ? null : since(span.end_ms),
    })),
  };
}

function staySpans(
  row: JobRow,
  failures: AttemptFailure[],
  [attempt, stage, queuedMs, startedMs, endedMs]: Visit,
) {
  const at = { attempt, stage };
  const queue: TimelineSpan = { kind: "queue", ...at, start_ms: queuedMs, end_ms: startedMs };
  const error = errorOf(row, failures, attempt, stage);
  return [queue, { kind: "work", ...at, start_ms: startedMs, end_ms: endedMs, error } as const];
}

function errorOf(
  row: JobRow,
  failures: AttemptFailure[],
  attempt: number,
  stage: Stage,
): string | null {
  const failure = failures.find((one) => one.attempt === attempt && one.stage === stage);
  if (failure) return failure.error.code;
  const isLast = row.attempt === attempt && row.stage === stage;
  return isLast && row.error !== null ? JSON.parse(row.error).code : null;
}

/** Tools of a turn run one after another, as soon as the model has answered. */
function turnSpans([attempt, stage, , startedMs]: Visit, turn: Turn, at: number): TimelineSpan[] {
  const base = { attempt, stage, turn: at };
  const calledMs = startedMs + turn.started_ms;
  const spans: TimelineSpan[] = [];
  if (turn.waited_ms > 0) {
    const start_ms = calledMs - turn.waited_ms;
    spans.push({ kind: "wait", ...base, start_ms, end_ms: calledMs });
  }
  const { backend_id, queue_ms, first_token_ms } = turn;
  let nowMs = calledMs + turn.engine_ms;
  const model = { backend_id, queue_ms, first_token_ms };
  spans.push({ kind: "model", ...base, start_ms: calledMs, end_ms: nowMs, ...model });
  for (const { name, status, duration_ms } of turn.tools) {
    const start_ms = nowMs;
    nowMs += duration_ms;
    spans.push({ kind: "tool", ...base, start_ms, end_ms: nowMs, name, status });
  }
  return spans;
}

/** It waits now, or was ended while it did. */
function lastQueue(row: JobRow, visits: Visit[]): TimelineSpan[] {
  const { attempt, stage, state } = row;
  const last = visits.at(-1);
  if (state === "active" || (last?.[0] === attempt && last[1] === stage)) return [];
  const start_ms = state === "pending" ? row.since_ms : (last?.[4] ?? row.created_ms);
  return [{ kind: "queue", attempt, stage, start_ms, end_ms: row.finished_ms }];
}

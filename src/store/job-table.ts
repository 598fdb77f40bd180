import type { Database } from "bun:sqlite";
import { isFinal, type Job } from "../jobs/job.ts";
import { writeLife } from "../jobs/life.ts";
import type { Verdict } from "../verifiers/verdict.ts";
import { type NewJobRow, NewJobs } from "./new-jobs.ts";
import type { JobRow, WorkRow } from "./tables.ts";

/** What a stage leaves in the row besides the job's life. Absent: unchanged. */
export type JobResult = {
  backendId?: string;
  outcome?: string;
  isolation?: "A" | "B";
  sampledTokens?: number;
  /** The highest of all stages is kept. */
  sandboxPeak?: { memoryBytes: number; processes: number };
  verdict?: Verdict;
};

/** The digest of a body, and who sent it. */
export type SubmittedBody = { sha256: string; client: string };

/**
 * A `JobRow`, as all statements that give one begin. What they are looked up by is `(SELECT ?)` and not `?`: SQLite
 * here has STAT4, and prepares a join or a range anew for each value that its plan could depend on.
 */
export const SELECT_JOB = `
  SELECT jobs.*, priority, labels, outcome FROM jobs JOIN job_bodies ON job_seq = seq`;

/** The same for a `WorkRow`. */
export const SELECT_WORK = `
  SELECT jobs.*, priority, labels, outcome, instance, options
  FROM jobs JOIN job_bodies ON job_seq = seq`;

/**
 * The rows of jobs. Everything that happens to a job passes here, so the statements are SQLite's own and prepared
 * once; each writes no index that its change leaves alone.
 */
export class JobTable {
  readonly #statements;
  readonly #new: NewJobs;

  constructor(db: Database) {
    this.#statements = prepare(db);
    this.#new = new NewJobs(db);
  }

  byId(id: string): JobRow | null {
    return this.#statements.byId.get(id);
  }

  workById(id: string): WorkRow | null {
    return this.#statements.workById.get(id);
  }

  bySeq(seq: number): JobRow | null {
    return this.#statements.bySeq.get(seq);
  }

  isUnfinished(id: string): boolean {
    return this.#statements.finished.get(id)?.finished_ms === null;
  }

  sampledTokens(id: string): number | null {
    return this.#statements.tokens.get(id)?.sampled_tokens ?? null;
  }

  /** What a job was submitted with, and by whom; null where there is none of that id. */
  submissionOf(id: string): SubmittedBody | null {
    return this.#statements.submissionOf.get(id);
  }

  /** Returns their `seq`s, which follow each other. */
  insert(news: NewJobRow[]): number[] {
    return this.#new.insert(news);
  }

  /** @param finishedSeq its position in the order of finishing, where it is over */
  update(
    seq: number,
    from: Pick<Job, "stage">,
    job: Job,
    result: JobResult,
    finishedSeq: number | null,
  ): void {
    const { life, end } = this.#statements;
    const { stage, state, attempt, crashes, ending, sinceMs } = job;
    const written = writeLife(job);
    if (isFinal(job)) {
      const { verdict } = result;
      const error = job.error === null ? null : JSON.stringify(job.error);
      const scored = verdict ? JSON.stringify(verdict) : null;
      const ended = [error, verdict?.reward ?? null, scored, job.finishedMs, finishedSeq] as const;
      end.run(stage, state, attempt, crashes, ending, sinceMs, written, ...ended, seq);
    } else {
      const { stageDeadlineMs, notBeforeMs } = job;
      const dates = [sinceMs, stageDeadlineMs, notBeforeMs] as const;
      life.run(stage, state, attempt, crashes, ending, ...dates, written, seq);
    }
    // What a former attempt recorded is not shown as if it belonged to the next one.
    if (stage !== "init") this.#keep(seq, result);
    else if (from.stage !== "init") this.#forget(seq);
    if (result.sandboxPeak) this.#keepPeak(seq, result.sandboxPeak);
  }

  #keep(seq: number, { backendId, outcome, isolation, sampledTokens }: JobResult): void {
    const { keep, outcome: setOutcome } = this.#statements;
    if (outcome !== undefined) setOutcome.run(outcome, seq);
    if (backendId === undefined && isolation === undefined && sampledTokens === undefined) return;
    keep.run(backendId ?? null, isolation ?? null, sampledTokens ?? null, seq);
  }

  #keepPeak(seq: number, peak: { memoryBytes: number; processes: number }): void {
    this.#statements.keepPeak.run(peak.memoryBytes, peak.processes, seq);
  }

  #forget(seq: number): void {
    const { forget, outcome, forgetTrajectory } = this.#statements;
    forget.run(seq);
    outcome.run(null, seq);
    forgetTrajectory.run(seq);
  }
}

type Value = string | number | null;

function prepare(db: Database) {
  const write = (sql: string) => db.query<never, Value[]>(sql);
  return {
    byId: db.query<JobRow, [string]>(`${SELECT_JOB} WHERE id = (SELECT ?)`),
    workById: db.query<WorkRow, [string]>(`${SELECT_WORK} WHERE id = (SELECT ?)`),
    bySeq: db.query<JobRow, [number]>(`${SELECT_JOB} WHERE seq = (SELECT ?)`),
    submissionOf: db.query<SubmittedBody, [string]>(
      "SELECT body_sha256 AS sha256, client FROM jobs JOIN job_bodies ON job_seq = seq WHERE id = (SELECT ?)",
    ),
    finished: db.query<Pick<JobRow, "finished_ms">, [string]>(
      "SELECT finished_ms FROM jobs WHERE id = ?",
    ),
    tokens: db.query<Pick<JobRow, "sampled_tokens">, [string]>(
      "SELECT sampled_tokens FROM jobs WHERE id = ?",
    ),
    life: write(
      `UPDATE jobs SET stage = ?, state = ?, attempt = ?, crashes = ?, ending = ?, since_ms = ?,
         stage_deadline_ms = ?, not_before_ms = ?, life = ? WHERE seq = ?`,
    ),
    end: write(
      `UPDATE jobs SET stage = ?, state = ?, attempt = ?, crashes = ?, ending = ?, since_ms = ?,
         stage_deadline_ms = NULL, not_before_ms = NULL, life = ?, error = ?, reward = ?, verdict = ?,
         finished_ms = ?, finished_seq = ? WHERE seq = ?`,
    ),
    keep: write(
      `UPDATE jobs SET backend_id = coalesce(?, backend_id), isolation = coalesce(?, isolation),
         sampled_tokens = coalesce(?, sampled_tokens) WHERE seq = ?`,
    ),
    keepPeak: write(
      `UPDATE jobs SET peak_memory_bytes = max(?, coalesce(peak_memory_bytes, 0)),
         peak_processes = max(?, coalesce(peak_processes, 0)) WHERE seq = ?`,
    ),
    outcome: write("UPDATE job_bodies SET outcome = ? WHERE job_seq = ?"),
    forget: write(
      "UPDATE jobs SET backend_id = NULL, isolation = NULL, sampled_tokens = NULL WHERE seq = ?",
    ),
    forgetTrajectory: write("DELETE FROM trajectories WHERE job_seq = ?"),
  };
}

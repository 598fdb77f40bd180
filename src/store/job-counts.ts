import type { Database } from "bun:sqlite";
import { type Job, STAGES, type Stage, type State } from "../jobs/job.ts";

export type JobCount = { stage: Stage; state: State; count: number };
type Place = Pick<Job, "stage" | "state">;
type Counts = Record<Stage, { pending: number; active: number }>;

/**
 * How many jobs wait or work, by stage. Kept beside the table, because counting a hundred thousand rows takes
 * longer than whoever asks for the status may hold the event loop.
 */
export class JobCounts {
  readonly #count;
  readonly #ready;
  readonly #delayed;
  /** Null before the first look, and when the table may have gone back. */
  #counts: Counts | null = null;

  constructor(db: Database) {
    this.#count = db.query<{ stage: Stage; state: "pending" | "active"; count: number }, []>(
      `SELECT stage, state, count(*) AS count FROM jobs INDEXED BY jobs_unfinished
       WHERE finished_ms IS NULL GROUP BY stage, state`,
    );
    const ofOne = (index: string, terms: string) =>
      db.query<{ count: number }, [string, string]>(
        `SELECT count(*) AS count FROM jobs INDEXED BY ${index}
         WHERE state = 'pending' AND ${terms} AND stage = ? AND client = ?`,
      );
    this.#ready = ofOne("jobs_claimable", "not_before_ms IS NULL");
    this.#delayed = ofOne("jobs_delayed", "not_before_ms IS NOT NULL");
  }

  list(): JobCount[] {
    const known = this.#known();
    return STAGES.flatMap((stage) =>
      (["pending", "active"] as const).map((state) => ({
        stage,
        state,
        count: known[stage][state],
      })),
    ).filter(({ count }) => count > 0);
  }

  get total(): number {
    const { init, run, eval: evaluation } = this.#known();
    const waiting = init.pending + run.pending + evaluation.pending;
    return waiting + init.active + run.active + evaluation.active;
  }

  /** Those of one client that wait. Walks no other's. */
  pendingOf(client: string): JobCount[] {
    return STAGES.map((stage) => {
      const ready = this.#ready.get(stage, client)?.count ?? 0;
      const delayed = this.#delayed.get(stage, client)?.count ?? 0;
      return { stage, state: "pending", count: ready + delayed };
    });
  }

  /** Those that wait for a stage, whatever for. */
  waiting(stage: Stage): number {
    return this.#known()[stage].pending;
  }

  inserted(job: Place): void {
    this.#add(job, 1);
  }

  changed(from: Place, to: Place): void {
    this.#add(from, -1);
    this.#add(to, 1);
  }

  /** What was written is undone. */
  rolledBack(): void {
    this.#counts = null;
  }

  #known(): Counts {
    if (this.#counts) return this.#counts;
    const none = () => ({ pending: 0, active: 0 });
    this.#counts = { init: none(), run: none(), eval: none() };
    for (const { stage, state, count } of this.#count.all()) this.#counts[stage][state] = count;
    return this.#counts;
  }

  #add({ stage, state }: Place, by: 1 | -1): void {
    if (!this.#counts || (state !== "pending" && state !== "active")) return;
    this.#counts[stage][state] += by;
  }
}

import type { Database } from "bun:sqlite";
import { isFinal, type Job, type Stage, type State } from "../jobs/job.ts";

export type JobCount = { stage: Stage; state: State; count: number };
type Place = Pick<Job, "stage" | "state">;

/**
 * How many jobs wait or work, by stage. Kept beside the table, because counting a hundred thousand rows takes
 * longer than whoever asks for the status may hold the event loop.
 */
export class JobCounts {
  readonly #count;
  /** By stage and state; null before the first look, and when the table may have gone back. */
  #counts: Map<string, JobCount> | null = null;

  constructor(db: Database) {
    this.#count = db.query<JobCount, []>(
      `SELECT stage, state, count(*) AS count FROM jobs INDEXED BY jobs_unfinished
       WHERE finished_ms IS NULL GROUP BY stage, state`,
    );
  }

  list(): JobCount[] {
    return [...this.#known().values()].filter(({ count }) => count > 0);
  }

  get total(): number {
    let total = 0;
    for (const { count } of this.#known().values()) total += count;
    return total;
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

  #known(): Map<string, JobCount> {
    this.#counts ??= new Map(this.#count.all().map((row) => [keyOf(row), row]));
    return this.#counts;
  }

  #add(place: Place, by: 1 | -1): void {
    if (isFinal(place) || !this.#counts) return;
    const { stage, state } = place;
    const known = this.#counts.get(keyOf(place));
    if (known) known.count += by;
    else this.#counts.set(keyOf(place), { stage, state, count: by });
  }
}

function keyOf({ stage, state }: Place): string {
  return `${stage} ${state}`;
}

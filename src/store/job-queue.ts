import type { Database } from "bun:sqlite";
import type { Stage } from "../jobs/job.ts";
import type { JobCounts } from "./job-counts.ts";
import { SELECT_WORK } from "./job-table.ts";
import type { WorkRow } from "./tables.ts";

/** Which waiting jobs of a client may be claimed now. */
export type ClaimFilter = {
  stage: Stage;
  client: string;
  limit: number;
  sandbox: boolean;
  backend: boolean;
  /** Images whose jobs are left out where they would start a sandbox; empty: the default one. */
  barred: string[];
};

/** Steps from one client to the next on the index of claimable jobs, whatever number of jobs each has. */
const CLIENTS_WAITING = `
  WITH RECURSIVE waiting (client) AS (
    SELECT min(client) FROM jobs
      WHERE stage = (SELECT ?1) AND state = 'pending' AND not_before_ms IS NULL
    UNION ALL
    SELECT (SELECT min(client) FROM jobs WHERE stage = (SELECT ?1) AND state = 'pending'
      AND not_before_ms IS NULL AND client > waiting.client)
    FROM waiting WHERE client IS NOT NULL
  )
  SELECT client FROM waiting WHERE client IS NOT NULL LIMIT 1000`;

/** Waiting jobs of a client that may start, the first to go first; `?4` and `?5` say what there is room for. */
const CLAIMABLE = `
  ${SELECT_WORK}
  WHERE state = 'pending' AND not_before_ms IS NULL AND stage = (SELECT ?1) AND client = (SELECT ?2)
    AND (CASE ?1 WHEN 'init' THEN uses_sandbox = 0
        WHEN 'eval' THEN eval_from_record = 1 OR (eval_from_record = 0 AND (?4 OR uses_sandbox = 0)) ELSE 1 END
      OR (?4 AND coalesce(image, '') NOT IN (SELECT value FROM json_each(?6))))
    AND (needs_backend = 0 OR ?5)
  ORDER BY queue_key, seq LIMIT (SELECT ?3)`;

const PAST_DEADLINE = `
  SELECT id FROM jobs INDEXED BY jobs_deadline
  WHERE finished_ms IS NULL AND deadline_ms <= ? AND state = 'pending' LIMIT 1000`;

/** The jobs that wait, for a stage or for a time. A part of the store: same connection, same transactions. */
export class JobQueue {
  readonly #counts: JobCounts;
  readonly #clientsWaiting;
  readonly #claimable;
  readonly #pastDeadline;
  readonly #nextDue;
  readonly #releaseDelayed;

  constructor(db: Database, counts: JobCounts) {
    this.#counts = counts;
    this.#clientsWaiting = db.query<{ client: string }, [Stage]>(CLIENTS_WAITING);
    this.#claimable = db.query<WorkRow, [Stage, string, number, number, number, string]>(CLAIMABLE);
    this.#pastDeadline = db.query<{ id: string }, [number]>(PAST_DEADLINE);
    this.#nextDue = db.query<{ due: number | null }, []>(
      "SELECT min(not_before_ms) AS due FROM jobs WHERE not_before_ms IS NOT NULL",
    );
    this.#releaseDelayed = db.query<never, [number]>(
      "UPDATE jobs SET not_before_ms = NULL WHERE not_before_ms IS NOT NULL AND not_before_ms <= ?",
    );
  }

  /** Clients with jobs that wait for a stage, at most a thousand. */
  clientsWaiting(stage: Stage): string[] {
    if (this.#counts.waiting(stage) === 0) return [];
    return this.#clientsWaiting.all(stage).map(({ client }) => client);
  }

  claimable({ stage, client, limit, sandbox, backend, barred }: ClaimFilter): WorkRow[] {
    const room = [sandbox ? 1 : 0, backend ? 1 : 0] as const;
    return this.#claimable.all(stage, client, limit, ...room, JSON.stringify(barred));
  }

  /** Ids of waiting jobs whose time is over, at most a thousand. */
  pastDeadline(nowMs: number): string[] {
    return this.#pastDeadline.all(nowMs).map(({ id }) => id);
  }

  /** Makes the delayed jobs claimable whose time has come. */
  releaseDelayed(nowMs: number): void {
    this.#releaseDelayed.run(nowMs);
  }

  /** When the next delayed job is due; null where none is delayed. */
  nextDueMs(): number | null {
    return this.#nextDue.get()?.due ?? null;
  }
}

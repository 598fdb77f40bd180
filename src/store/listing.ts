import type { Database, SQLQueryBindings } from "bun:sqlite";
import { isFinal, type State } from "../jobs/job.ts";
import { SELECT_JOB } from "./job-table.ts";
import type { JobRow } from "./tables.ts";

export type ListFilter = {
  states?: State[];
  taskKind?: string;
  /** Whose; without it everybody's. */
  client?: string;
  /** All of them, by name. */
  labels?: Record<string, string>;
  limit: number;
  /** Jobs behind this position: of submission, or of finishing when `order` says so. */
  after: number;
  order: "submitted" | "finished";
};

/** `next` is the position to go on from; without `more` everything that matches now was seen. */
export type ListPage = { rows: JobRow[]; next: number; more: boolean };

/** Rows that one page looks at, at most: what few rows match can't hold the event loop. */
const SCAN_ROWS = 2000;

/** Which rows are walked, in the order of their positions; the rest of the filter looks at each of them. */
type Walk = { from: string; position: string; values: SQLQueryBindings[] };

/**
 * Pages through jobs in the order of submission or of finishing. One page costs the same however many jobs
 * there are: it walks the narrowest index that has the order, and no further than `SCAN_ROWS`.
 */
export function listJobs(db: Database, filter: ListFilter): ListPage {
  // Mostly the first rows are those that are wanted; only else are more looked at.
  const near = look(db, filter, Math.min(filter.limit + 1, SCAN_ROWS));
  return near.more && near.rows.length < filter.limit ? look(db, filter, SCAN_ROWS) : near;
}

function look(db: Database, filter: ListFilter, scanRows: number): ListPage {
  const walk = chooseWalk(filter);
  const wanted = matching(filter);
  const scanned = db
    .query<{ seq: number; position: number; matches: number }, SQLQueryBindings[]>(
      `SELECT jobs.seq AS seq, ${walk.position} AS position, ${wanted.sql} AS matches
       FROM ${walk.from} AND ${walk.position} > (SELECT ?) ORDER BY ${walk.position} LIMIT ${scanRows}`,
    )
    .all(...wanted.values, ...walk.values, filter.after);
  const found = scanned.filter(({ matches }) => matches === 1);
  const page = found.slice(0, filter.limit);
  const rowOf = db.query<JobRow, [number]>(`${SELECT_JOB} WHERE seq = (SELECT ?)`);
  const rows = page.map(({ seq }) => rowOf.get(seq) as JobRow);
  const cut = page.length < found.length;
  const last = cut ? page.at(-1) : scanned.at(-1);
  return {
    rows,
    next: last?.position ?? filter.after,
    more: cut || scanned.length === scanRows,
  };
}

function chooseWalk({ order, labels = {}, states }: ListFilter): Walk {
  if (order === "finished") {
    return { from: "jobs WHERE finished_seq IS NOT NULL", position: "finished_seq", values: [] };
  }
  const [label] = Object.entries(labels);
  if (label) {
    const from =
      "labels CROSS JOIN jobs ON seq = job_seq WHERE name = (SELECT ?) AND value = (SELECT ?)";
    return { from, position: "job_seq", values: label };
  }
  const position = "seq";
  if (states?.every((state) => !isFinal({ state }))) {
    const from = "jobs INDEXED BY jobs_unfinished WHERE finished_ms IS NULL";
    return { from, position, values: [] };
  }
  if (states?.length === 1) {
    const from = "jobs INDEXED BY jobs_final WHERE finished_ms IS NOT NULL AND state = (SELECT ?)";
    return { from, position, values: states };
  }
  return { from: "jobs WHERE true", position, values: [] };
}

function matching({ states, taskKind, client, labels = {} }: ListFilter) {
  const terms: string[] = ["true"];
  const values: SQLQueryBindings[] = [];
  if (states) {
    terms.push(`state IN (${states.map(() => "?").join(", ")})`);
    values.push(...states);
  }
  if (taskKind !== undefined) {
    terms.push("task_kind = ?");
    values.push(taskKind);
  }
  if (client !== undefined) {
    terms.push("client = ?");
    values.push(client);
  }
  for (const label of Object.entries(labels)) {
    const one =
      "SELECT 1 FROM labels AS l WHERE l.name = ? AND l.value = ? AND l.job_seq = jobs.seq";
    terms.push(`EXISTS (${one})`);
    values.push(...label);
  }
  return { sql: terms.join(" AND "), values };
}

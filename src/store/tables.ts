import { blob, integer, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { BatchState } from "../jobs/batch.ts";
import type { GroupState } from "../jobs/group.ts";
import type { Ending, Stage, State } from "../jobs/job.ts";

/**
 * The columns as `migrations.ts` creates them. JSON columns hold text that SQLite seldom looks into.
 *
 * What the queue asks for, and what changes as a job goes on. Each change writes the whole row, so what is long and
 * stays as it is lies in `jobBodies`.
 */
export const jobs = sqliteTable("jobs", {
  seq: integer().primaryKey({ autoIncrement: true }),
  id: text().notNull(),
  task_kind: text().notNull(),
  uses_sandbox: integer().notNull(),
  needs_backend: integer().notNull(),
  /** What its sandbox is made from; null: the service's default. */
  image: text(),
  /** What EVAL needs. 0: the agent's sandbox; 1: the outcome alone; 2: that and a fresh sandbox. */
  eval_from_record: integer().notNull(),
  /** Who submitted it, for fairness: the name of a token, or a peer. */
  client: text().notNull(),
  /** Place among the client's waiting jobs; smaller goes first. */
  queue_key: integer().notNull(),
  stage: text().$type<Stage>().notNull(),
  state: text().$type<State>().notNull(),
  attempt: integer().notNull(),
  crashes: integer().notNull(),
  ending: text().$type<Ending>(),
  created_ms: integer().notNull(),
  since_ms: integer().notNull(),
  deadline_ms: integer().notNull(),
  stage_deadline_ms: integer(),
  /** A job that is to be tried again is not claimed before; cleared when that time has come. */
  not_before_ms: integer(),
  /** The rest of the job, which nothing is looked up by: a `JobLife` as text. */
  life: text().notNull(),
  /** The group that the job belongs to, and for which of its samples. */
  group_seq: integer(),
  sample: integer(),
  /** The job whose outcome this one scores again. */
  rescore_of: text(),
  /** How long the client may be silent; null where it may be for good. */
  lease_ms: integer(),
  lease_until_ms: integer(),
  callback_url: text(),
  backend_id: text(),
  /** Level of the sandbox that the job had. */
  isolation: text().$type<"A" | "B">(),
  /** Tokens that the model wrote in RUN; null where its engine does not count. */
  sampled_tokens: integer(),
  /** The most that its sandboxes used. */
  peak_memory_bytes: integer(),
  peak_processes: integer(),
  error: text(),
  reward: real(),
  verdict: text(),
  finished_ms: integer(),
  /** Position in the order of finishing, for cursors. */
  finished_seq: integer(),
});

/** What was asked for, written once, and what RUN left for EVAL. One for each job. */
export const jobBodies = sqliteTable("job_bodies", {
  job_seq: integer().primaryKey(),
  body_sha256: text().notNull(),
  instance: text().notNull(),
  options: text().notNull(),
  priority: integer().notNull(),
  /** As a JSON object; null for none. `labels` has them as rows. */
  labels: text(),
  /** What RUN left for EVAL, as JSON. */
  outcome: text(),
});

export const labels = sqliteTable("labels", {
  name: text().notNull(),
  value: text().notNull(),
  job_seq: integer().notNull(),
});

export const groups = sqliteTable("groups", {
  seq: integer().primaryKey({ autoIncrement: true }),
  id: text().notNull(),
  body_sha256: text().notNull(),
  batch_seq: integer(),
  /** Order within the batch. */
  position: integer(),
  /** Names the instance in the difficulty statistics. */
  instance_key: text().notNull(),
  instance: text().notNull(),
  /** What each rollout is made from, as JSON. */
  template: text().notNull(),
  /** When the group is complete and what it is worth, as the request has it. */
  rules: text().notNull(),
  state: text().$type<GroupState>().notNull(),
  informative: integer(),
  /** Position among its batch's informative groups, from 1. */
  delivered: integer(),
  created_ms: integer().notNull(),
  started_ms: integer(),
  finished_ms: integer(),
  error: text(),
});

export const batches = sqliteTable("batches", {
  seq: integer().primaryKey({ autoIncrement: true }),
  id: text().notNull(),
  body_sha256: text().notNull(),
  /** The plan, and what its groups are made from; as JSON. */
  options: text().notNull(),
  state: text().$type<BatchState>().notNull(),
  /** No more instances are to come. */
  closed: integer().notNull(),
  /** Where instances are pulled from, and how far that is; as JSON. */
  source: text(),
  /** Batches that go on with what the one before has left. */
  series: text(),
  created_ms: integer().notNull(),
  finished_ms: integer(),
  error: text(),
});

/** What is known of a dataset row from the groups of all batches. */
export const instances = sqliteTable("instances", {
  key: text().primaryKey(),
  data_source: text().notNull(),
  groups: integer().notNull(),
  informative: integer().notNull(),
  rollouts: integer().notNull(),
  reward_sum: real().notNull(),
  reward_squares: real().notNull(),
  tokens: integer().notNull(),
  last_mean: real().notNull(),
  updated_ms: integer().notNull(),
});

export const trajectories = sqliteTable("trajectories", {
  job_seq: integer().primaryKey(),
  attempt: integer().notNull(),
  record: blob({ mode: "buffer" }).notNull(),
});

export const backends = sqliteTable("backends", {
  id: text().primaryKey(),
  url: text().notNull(),
  model: text().notNull(),
  /** Name of the environment variable that holds the key; the key itself is never stored. */
  api_key_env: text(),
  added_ms: integer().notNull(),
  /** The model's Hugging Face folder on this node. */
  model_dir: text(),
  /** What its probe found, as JSON; null for one that was added before probes looked. */
  profile: text(),
  /** 1 where each rollout says itself how it is called. */
  routed: integer().notNull(),
  /** What becomes of the trajectories on one that is drained; null for one that is not. */
  leaving: text().$type<"finish" | "move">(),
});

/** Announced by the trainer, in order. */
export const weightVersions = sqliteTable("weight_versions", {
  ordinal: integer().primaryKey({ autoIncrement: true }),
  version: text().notNull(),
  announced_ms: integer().notNull(),
});

/** One row while weights are being changed. */
export const weightPause = sqliteTable("weight_pause", {
  id: integer().primaryKey(),
  mode: text().$type<"drain" | "abort" | "keep">().notNull(),
  until_ms: integer().notNull(),
  lease_ms: integer().notNull(),
});

/** What decides about a job. */
export type JobHead = typeof jobs.$inferSelect;
export type JobBody = typeof jobBodies.$inferSelect;
/** A job as it is shown, without what is long and shown to nobody. */
export type JobRow = JobHead & Pick<JobBody, "priority" | "labels" | "outcome">;
/** A job as its stages need it. */
export type WorkRow = JobRow & Pick<JobBody, "instance" | "options">;
export type BatchRow = typeof batches.$inferSelect;
export type InstanceRow = typeof instances.$inferSelect;
export type GroupRow = typeof groups.$inferSelect;
export type BackendRow = typeof backends.$inferSelect;

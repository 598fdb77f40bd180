import { blob, integer, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { BatchState } from "../jobs/batch.ts";
import type { GroupState } from "../jobs/group.ts";
import type { Ending, Stage, State } from "../jobs/job.ts";

/** The columns as `migrations.ts` creates them. JSON columns hold text that SQLite never looks into. */
export const jobs = sqliteTable("jobs", {
  seq: integer().primaryKey({ autoIncrement: true }),
  id: text().notNull(),
  body_sha256: text().notNull(),
  task_kind: text().notNull(),
  uses_sandbox: integer().notNull(),
  needs_backend: integer().notNull(),
  instance: text().notNull(),
  options: text().notNull(),
  stage: text().$type<Stage>().notNull(),
  state: text().$type<State>().notNull(),
  attempt: integer().notNull(),
  crashes: integer().notNull(),
  ending: text().$type<Ending>(),
  limits: text().notNull(),
  created_ms: integer().notNull(),
  since_ms: integer().notNull(),
  stage_deadline_ms: integer(),
  deadline_ms: integer().notNull(),
  init_queued_ms: integer().notNull(),
  init_active_ms: integer().notNull(),
  run_queued_ms: integer().notNull(),
  run_active_ms: integer().notNull(),
  eval_queued_ms: integer().notNull(),
  eval_active_ms: integer().notNull(),
  backend_id: text(),
  /** What RUN left for EVAL, as JSON. */
  outcome: text(),
  error: text(),
  reward: real(),
  verdict: text(),
  finished_ms: integer(),
  /** Position in the order of finishing, for cursors. */
  finished_seq: integer(),
  /** Level of the sandbox that the job had. */
  isolation: text().$type<"A" | "B">(),
  /** What its sandbox is made from; null: the service's default. */
  image: text(),
  /** The group that the job belongs to, and for which of its samples. */
  group_seq: integer(),
  sample: integer(),
  /** Tokens that the model wrote in RUN; null where its engine does not count. */
  sampled_tokens: integer(),
  /** The most that its sandboxes used. */
  peak_memory_bytes: integer(),
  peak_processes: integer(),
  num_attempts: integer().notNull(),
  /** The failures that were followed by another attempt, as JSON; null for none. */
  failures: text(),
  /** A job that is to be tried again is not claimed before; cleared when that time has come. */
  not_before_ms: integer(),
  /** Whether EVAL needs only `outcome`. */
  eval_from_record: integer().notNull(),
  /** The job whose outcome this one scores again. */
  rescore_of: text(),
  /** Who submitted it, for fairness: the name of a token, or a peer. */
  client: text().notNull(),
  priority: integer().notNull(),
  /** Place among the client's waiting jobs; smaller goes first. */
  queue_key: integer().notNull(),
  /** As a JSON object; null for none. `labels` has them as rows. */
  labels: text(),
  /** How long the client may be silent; null where it may be for good. */
  lease_ms: integer(),
  lease_until_ms: integer(),
  callback_url: text(),
  /** Why it is being ended, where the asker said so. */
  ending_reason: text(),
  /** Its stays in stages, as JSON; null before the first. */
  visits: text(),
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
});

export type JobRow = typeof jobs.$inferSelect;
export type BatchRow = typeof batches.$inferSelect;
export type InstanceRow = typeof instances.$inferSelect;
export type GroupRow = typeof groups.$inferSelect;
export type BackendRow = typeof backends.$inferSelect;

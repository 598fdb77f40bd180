import { z } from "zod";
import type { BatchPlan } from "../jobs/batch.ts";
import { type GroupRequest, groupIdSchema, groupRequestSchema } from "./group.ts";
import { rolloutRequestSchema } from "./rollout.ts";

const MAX_INSTANCES = 5000;

const instances = z.array(rolloutRequestSchema.shape.instance).max(MAX_INSTANCES);

/** A JSONL file on the node, or one that is served with byte ranges. */
const source = z
  .strictObject({ file: z.string().startsWith("/").optional(), url: z.url().optional() })
  .refine(({ file, url }) => (file === undefined) !== (url === undefined), {
    message: "either file or url is needed",
  });

const batchShape = {
  /** Client-chosen: the same id with the same body is the same batch. */
  id: groupIdSchema.optional(),
  instances: instances.optional(),
  /** More instances will be added. */
  open: z.boolean().optional(),
  /** Where instances are read from as they are needed, behind those that are given. */
  source: source.optional(),
  goal: z.strictObject({
    groups: z.int().min(1).max(100_000),
    tokens: z.int().min(1).optional(),
  }),
  keep: z.enum(["cheapest", "first_started"]).optional(),
  /** By default `end`; `keep` for a series and where rollouts are paused. */
  unfinished: z.enum(["end", "keep", "park", "restart"]).optional(),
  /** Goes on with what the last batch of this name has left, which has to be over. */
  series: groupIdSchema.optional(),
  /** A rollout that has used them up waits for the next batch, which goes on with it. */
  max_turns_per_batch: z.int().min(1).optional(),
  max_tokens_per_batch: z.int().min(1).optional(),
  /** A batch that is over, with whose unfinished groups this one begins. */
  carry_from: groupIdSchema.optional(),
  max_rollouts: z.int().min(1).optional(),
  oversampling: z.number().min(1).max(100).optional(),
  expected_share: z.number().gt(0).max(1).optional(),
  max_failed_groups: z.int().min(0).optional(),
  /** What was begun more weight versions ago: groups are ended, or their old rollouts dropped and begun anew. */
  max_staleness: z.int().min(0).optional(),
  stale: z.enum(["end", "drop"]).optional(),
};

export const batchRequestSchema = z.strictObject({
  ...groupRequestSchema.omit({ id: true, instance: true }).shape,
  ...batchShape,
});
export type BatchRequest = z.infer<typeof batchRequestSchema>;

export const appendSchema = z.strictObject({
  instances,
  /** Where the first of them goes: a repeat of what is there already adds nothing. */
  at: z.int().min(0).optional(),
  /** No more are to come. */
  close: z.boolean().optional(),
});

/** What a batch's groups are made from, besides their instance. */
export type GroupBase = Omit<GroupRequest, "id" | "instance">;

/** What a batch keeps for the instances that come later; `client` is who made it. */
export type GroupOrigin = { base: GroupBase; client: string };

/** Whether its rollouts are paused before they are over. */
export function isPartial(request: BatchRequest): boolean {
  return (request.max_turns_per_batch ?? request.max_tokens_per_batch) !== undefined;
}

/** What concerns the batch, and what each of its groups is. */
export function splitBatch(request: BatchRequest): { plan: BatchPlan; base: GroupBase } {
  const { id: _id, instances: _instances, open: _open, ...given } = request;
  const { carry_from: _from, source: _source, series, ...others } = given;
  const { goal, keep, unfinished, max_rollouts, oversampling, ...partial } = others;
  const { max_turns_per_batch, max_tokens_per_batch, ...rest } = partial;
  const { expected_share, max_failed_groups, max_staleness, stale, ...base } = rest;
  const plan: BatchPlan = {
    goal: { groups: goal.groups, tokens: goal.tokens ?? null },
    keep: keep ?? "cheapest",
    unfinished: unfinished ?? (series !== undefined || isPartial(request) ? "keep" : "end"),
    maxTurns: max_turns_per_batch ?? null,
    maxTokens: max_tokens_per_batch ?? null,
    maxRollouts: max_rollouts ?? null,
    oversampling: oversampling ?? 2,
    expectedShare: expected_share ?? 0.5,
    maxStaleness: max_staleness ?? null,
    stale: stale ?? "end",
    maxFailedGroups: max_failed_groups ?? Math.max(8, goal.groups),
  };
  return { plan, base };
}

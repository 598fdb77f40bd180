import type { z } from "zod";
import { appendSchema, batchRequestSchema } from "../../protocol/batch.ts";
import { groupRequestSchema } from "../../protocol/group.ts";
import * as queries from "../../protocol/queries.ts";
import { rolloutRequestSchema, submitSchema } from "../../protocol/rollout.ts";
import { addSchema, decisionsSchema, leavingSchema } from "../routes/backends.ts";
import { batchListQuery, groupsQuery } from "../routes/batches.ts";
import { groupListQuery, groupReadQuery } from "../routes/groups.ts";
import { readySchema } from "../routes/health.ts";
import { instanceQuery } from "../routes/instances.ts";
import { rescoreSchema } from "../routes/rescore.ts";
import { announceSchema, pauseSchema } from "../routes/weights.ts";

/** One route as clients use it. What a schema says is what the route checks, because it is the same object. */
export type Operation = {
  route: `${"GET" | "POST" | "DELETE"} /${string}`;
  summary: string;
  query?: z.ZodType;
  body?: z.ZodType;
  /** A body that the route takes. */
  example?: unknown;
  /** What it answers with, where that is not JSON. */
  answers?: string[];
};

const ROW = { data_source: "echo", reward: 1 };
const ROLLOUT = { id: "step7-row3-0", instance: ROW, labels: { step: "7" }, num_attempts: 3 };
const TRAJECTORY = ["application/json", "application/msgpack", "application/x-protobuf"];

export const OPERATIONS: Operation[] = [
  {
    route: "POST /v1/rollouts",
    summary: "Submit one rollout, or many; a repeated id with the same body is the same rollout",
    query: queries.submitQuery,
    body: rolloutRequestSchema.or(submitSchema),
    example: ROLLOUT,
  },
  {
    route: "GET /v1/rollouts",
    summary: "List rollouts, or follow the log of finished ones, behind a cursor",
    query: queries.listQuery,
  },
  {
    route: "DELETE /v1/rollouts",
    summary: "Cancel the unfinished rollouts of a label",
    query: queries.cancelQuery,
  },
  {
    route: "POST /v1/rollouts/renew",
    summary: "Renew leases, by ids or by labels",
    body: queries.renewSchema,
    example: { labels: { step: "7" } },
  },
  {
    route: "GET /v1/rollouts/{id}",
    summary: "One rollout: state, reward, error, timings; waits for its end if asked",
    query: queries.waitQuery,
  },
  {
    route: "GET /v1/rollouts/{id}/trajectory",
    summary: "What happened in a rollout, by Accept",
    query: queries.oneTrajectoryQuery,
    answers: TRAJECTORY,
  },
  {
    route: "GET /v1/rollouts/{id}/timeline",
    summary: "Where a rollout's time went: queues, stages, calls of the model, tools",
  },
  {
    route: "GET /v1/trajectories",
    summary: "The trajectories of a page of rollouts in one body, by Accept",
    query: queries.trajectoriesQuery,
    answers: ["application/jsonl", ...TRAJECTORY.slice(1)],
  },
  {
    route: "POST /v1/rollouts/{id}/rescore",
    summary: "Score the recorded outcome of a finished rollout again, as a rollout of its own",
    query: queries.waitQuery,
    body: rescoreSchema,
  },
  {
    route: "GET /v1/rollouts/{id}/scores",
    summary: "Every verdict on what a rollout left, the oldest first",
  },
  {
    route: "DELETE /v1/rollouts/{id}",
    summary: "Cancel a rollout",
    query: queries.waitQuery,
  },
  {
    route: "GET /v1/events",
    summary: "Finished rollouts, groups and batches as server-sent events; Last-Event-ID resumes",
    query: queries.eventsQuery,
    answers: ["text/event-stream"],
  },
  {
    route: "POST /v1/groups",
    summary: "Submit the rollouts of one instance, which are compared with each other",
    query: groupReadQuery,
    body: groupRequestSchema,
    example: { instance: ROW, num_samples: 4 },
  },
  { route: "GET /v1/groups", summary: "List groups", query: groupListQuery },
  { route: "GET /v1/groups/{id}", summary: "One group with its rewards", query: groupReadQuery },
  { route: "DELETE /v1/groups/{id}", summary: "End a group", query: groupReadQuery },
  {
    route: "POST /v1/batches",
    summary: "Submit instances until a number of informative groups is there",
    query: queries.waitQuery,
    body: batchRequestSchema,
  },
  { route: "GET /v1/batches", summary: "List batches", query: batchListQuery },
  { route: "GET /v1/batches/{id}", summary: "One batch", query: queries.waitQuery },
  {
    route: "POST /v1/batches/{id}/instances",
    summary: "Append instances to a running batch",
    body: appendSchema,
  },
  {
    route: "GET /v1/batches/{id}/groups",
    summary: "The groups that a batch delivered, in order",
    query: groupsQuery,
  },
  { route: "DELETE /v1/batches/{id}", summary: "End a batch", query: queries.waitQuery },
  { route: "GET /v1/instances", summary: "How hard each instance was", query: instanceQuery },
  { route: "GET /v1/backends", summary: "List inference servers" },
  {
    route: "POST /v1/backends",
    summary: "Probe and add an inference server",
    body: addSchema,
    example: { url: "http://127.0.0.1:8000/v1" },
  },
  {
    route: "GET /v1/backends/decisions",
    summary: "Why rollouts went where they went",
    query: decisionsSchema,
  },
  {
    route: "GET /v1/backends/{id}",
    summary: "One inference server, and why rollouts went there",
    query: decisionsSchema,
  },
  {
    route: "POST /v1/backends/{id}/drain",
    summary: "Let an inference server run empty",
    query: leavingSchema,
  },
  {
    route: "DELETE /v1/backends/{id}",
    summary: "Remove an inference server",
    query: leavingSchema,
  },
  { route: "GET /v1/weights", summary: "The versions of the weights" },
  {
    route: "POST /v1/weights",
    summary: "Announce a new version of the weights",
    body: announceSchema,
    example: { version: 7 },
  },
  {
    route: "POST /v1/weights/pause",
    summary: "Pause the calls of models before the weights change",
    body: pauseSchema,
    example: { mode: "drain", wait_ms: 60_000 },
  },
  { route: "POST /v1/weights/resume", summary: "Go on after a pause" },
  { route: "GET /v1/status", summary: "Counts by stage" },
  { route: "GET /healthz", summary: "Alive" },
  {
    route: "GET /readyz",
    summary:
      "Takes work, and has a driver, an image and a backend for it; 503 names what is missing",
    query: readySchema,
  },
  { route: "GET /metrics", summary: "Metrics for Prometheus", answers: ["text/plain"] },
  { route: "GET /openapi.json", summary: "This description" },
];

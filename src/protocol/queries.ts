import { z } from "zod";
import { STATES } from "../jobs/job.ts";
import { labelQuery, someLabels } from "./labels.ts";
import { rolloutIdSchema } from "./rollout.ts";
import { trajectoryQuery } from "./trajectory-view.ts";

/** The longest that a request may wait for a job. Units: milliseconds. */
const MAX_WAIT_MS = 600_000;

/** A whole number in a query, in digits: `Number("")` is 0, and would be a filter that nobody has written. */
export function wholeQuery(min: number, max: number = Number.MAX_SAFE_INTEGER) {
  const most = max === Number.MAX_SAFE_INTEGER ? "" : ` and at most ${max}`;
  const error = `must be a whole number of at least ${min}${most}`;
  return z
    .string()
    .regex(/^\d{1,16}$/, error)
    .meta({ type: "integer" })
    .transform(Number)
    .pipe(z.int({ error }).min(min, error).max(max, error));
}

export const waitMs = wholeQuery(0, MAX_WAIT_MS).default(0);
export const cursor = wholeQuery(0);

/** How many entries a page has. */
export function pageLimit(most: number, fallback: number) {
  return wholeQuery(1, most).default(fallback);
}

/** Several of `values`, with commas between. */
export function anyOf<const T extends readonly string[]>(values: T) {
  return z.string().transform((text, context): T[number][] => {
    const given = text.split(",");
    if (given.every((each) => values.includes(each))) return given;
    const message = `must be of ${values.join(", ")}, with commas between several`;
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });
}

const states = anyOf(STATES);

export const waitQuery = z.strictObject({ wait_ms: waitMs });

export const submitQuery = z.strictObject({
  wait_ms: waitMs,
  /** Checks everything and submits nothing. */
  dry_run: z.stringbool().default(false),
});

export const listQuery = z.strictObject({
  after: cursor.default(0),
  limit: pageLimit(1000, 100),
  order: z.enum(["submitted", "finished"]).default("submitted"),
  state: states.optional(),
  label: labelQuery.optional(),
  kind: z.string().min(1).optional(),
  wait_ms: waitMs,
});

/** A page of rollouts whose trajectories are wanted. */
export const trajectoriesQuery = listQuery.omit({ wait_ms: true }).extend(trajectoryQuery);

export const oneTrajectoryQuery = z.strictObject(trajectoryQuery);

/** Of a cancel of many: a label has to be named, so that nobody ends everything by leaving it out. */
export const cancelQuery = z.strictObject({
  label: labelQuery,
  state: states.optional(),
  kind: z.string().min(1).optional(),
});

export const eventsQuery = z.strictObject({
  after: cursor.optional(),
  state: states.optional(),
  label: labelQuery.optional(),
  kind: z.string().min(1).optional(),
  /** Also what happens to unfinished rollouts, as it happens. */
  live: z.stringbool().default(false),
  /** Also the ends of groups and batches, whatever is selected of the rollouts. */
  groups: z.stringbool().default(false),
});

export const renewSchema = z.union([
  z.strictObject({ ids: z.array(rolloutIdSchema).min(1).max(10_000) }),
  z.strictObject({ labels: someLabels }),
]);

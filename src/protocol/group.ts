import { z } from "zod";
import { ADVANTAGES } from "../jobs/advantages.ts";
import type { GroupPlan } from "../jobs/group.ts";
import type { Overlong } from "../jobs/overlong.ts";
import { MAX_RULE_LENGTH } from "../jobs/reward-rule.ts";
import { rolloutRequestSchema } from "./rollout.ts";

/** Shorter than a rollout's, because the ids of its rollouts begin with it. */
export const groupIdSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, "must be 1-100 of A-Z a-z 0-9 . _ -");

const tokens = z.int().min(1).max(100_000_000);

/** What becomes of rollouts that are too long; see `jobs/overlong.ts`. */
const overlongSchema = z.discriminatedUnion("mode", [
  z.strictObject({ mode: z.literal("keep") }),
  z.strictObject({ mode: z.literal("filter"), max_tokens: tokens.optional() }),
  z.strictObject({
    mode: z.literal("penalty"),
    max_tokens: tokens,
    buffer_tokens: z.int().min(0).max(100_000_000),
    factor: z.number().gt(0).max(100).optional(),
  }),
]);

/** What is asked of a group besides its rollouts. What is left out is as `planOf` has it. */
const planShape = {
  num_samples: z.int().min(1).max(1024),
  /** With so many rewards the group is complete and its other rollouts are ended. */
  complete_at: z.int().min(1).optional(),
  /** How many of its rollouts may be begun anew because others failed. */
  max_replacements: z.int().min(0).max(10_000).optional(),
  /** A rollout that a limit or its own doing ended without a verdict. */
  on_policy_failure: z.enum(["replace", "drop"]).optional(),
  /** When the rewards teach something: their spread, or a rule on them. */
  informative: z
    .union([
      z.strictObject({ spread_above: z.number().min(0).max(1) }),
      z.strictObject({ rule: z.string().min(1).max(MAX_RULE_LENGTH) }),
    ])
    .optional(),
  overlong: overlongSchema.optional(),
};

export const groupRequestSchema = z.strictObject({
  ...rolloutRequestSchema.shape,
  ...planShape,
  /** Client-chosen: the same id with the same body is the same group. */
  id: groupIdSchema.optional(),
});

type GroupPlanRequest = z.infer<z.ZodObject<typeof planShape>>;
export type GroupRequest = z.infer<typeof groupRequestSchema>;

export const advantagesQuery = z.enum(ADVANTAGES).optional();

/** What concerns the group, and what each of its rollouts is. */
export function splitGroup(request: Omit<GroupRequest, "id">) {
  const { num_samples, complete_at, max_replacements, on_policy_failure, ...others } = request;
  const { informative, overlong, ...rollout } = others;
  const ends = { num_samples, complete_at, max_replacements, on_policy_failure };
  return { plan: planOf({ ...ends, informative, overlong }), rollout };
}

/** The request in the words of `jobs/group.ts`, with its defaults. */
function planOf(request: GroupPlanRequest): GroupPlan {
  const { num_samples: numSamples, informative = { spread_above: 0 } } = request;
  return {
    numSamples,
    completeAt: request.complete_at ?? numSamples,
    maxReplacements: request.max_replacements ?? numSamples,
    onPolicyFailure: request.on_policy_failure ?? "replace",
    informative: "rule" in informative ? informative.rule : `spread > ${informative.spread_above}`,
    overlong: overlongOf(request.overlong),
  };
}

function overlongOf(request: GroupPlanRequest["overlong"]): Overlong {
  switch (request?.mode) {
    case undefined:
    case "keep":
      return { mode: "keep" };
    case "filter":
      return { mode: "filter", maxTokens: request.max_tokens ?? null };
    case "penalty": {
      const { max_tokens: maxTokens, buffer_tokens: bufferTokens, factor = 1 } = request;
      return { mode: "penalty", maxTokens, bufferTokens, factor };
    }
  }
}

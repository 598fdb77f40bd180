import { createHash, randomUUID } from "node:crypto";
import { ServiceError } from "../errors.ts";
import { createGroup, type GroupPlan, isInformative, rulesOf } from "../jobs/group.ts";
import { inScope } from "../jobs/owner.ts";
import type { GroupSubmission } from "../pipeline/group-parts.ts";
import type { BatchSubmission } from "../pipeline/live-batch.ts";
import type { Submission } from "../pipeline/parts.ts";
import { type BatchRequest, type GroupOrigin, isPartial, splitBatch } from "../protocol/batch.ts";
import { type GroupRequest, splitGroup } from "../protocol/group.ts";
import { canonicalJson, inField, parseBody } from "../protocol/parse.ts";
import { type RolloutRequest, rolloutRequestSchema } from "../protocol/rollout.ts";

/** @param client who asks, among whom slots are shared */
type AcceptGroup = (request: GroupRequest, client: string) => GroupSubmission;

/**
 * Turns a checked request into a group: its rollouts are accepted as a single one would be.
 *
 * @throws ServiceError `unknown_task_kind`, `invalid_field`
 */
export function acceptGroupWith(accept: (request: RolloutRequest) => Submission): AcceptGroup {
  return ({ id, ...body }, client) => {
    const { plan, rollout } = splitGroup(body);
    checkPlan(plan);
    const { job, row } = accept(rollout);
    const { id: _id, ...jobTemplate } = job;
    const { bodySha256: _sha, instance, ...rowTemplate } = row;
    return {
      id: id ?? randomUUID(),
      bodySha256: sha256(canonicalJson(body)),
      instanceKey: inScope(client, instanceKey(body.instance)),
      instance,
      template: { job: jobTemplate, row: { ...rowTemplate, client } },
      plan,
    };
  };
}

/** The same for a batch: its groups get their ids from it later. */
export function acceptBatchWith(acceptGroup: AcceptGroup, checkSource: (address: string) => void) {
  const acceptInstances = ({ base, client }: GroupOrigin, instances: GroupRequest["instance"][]) =>
    instances.map((instance, index) =>
      inField(`instances[${index}]`, () => acceptGroup({ ...base, instance }, client)),
    );
  const acceptBatch = (request: BatchRequest, client: string): BatchSubmission => {
    const { id, ...body } = request;
    const { plan, base } = splitBatch(request);
    // Refused here even where the instances come later.
    const group = splitGroup({ ...base, instance: { data_source: "none" } }).plan;
    checkPlan(group);
    if (plan.maxRollouts !== null && plan.maxRollouts < group.numSamples) {
      throw tooFewRollouts(group.numSamples);
    }
    const address = body.source?.file ?? body.source?.url ?? null;
    if (address !== null) {
      checkSource(address);
      if (body.open) throw openSource();
    }
    const goesOn = (body.carry_from ?? body.series) !== undefined;
    const comesLater = body.open || address !== null || goesOn;
    if (isPartial(request) && (plan.unfinished === "end" || plan.unfinished === "restart")) {
      throw thrownAway(plan.unfinished);
    }
    if (!body.instances?.length && !comesLater) {
      const mend = 'give some, or a source, or "open": true to add them later, or carry_from';
      throw new ServiceError(
        "invalid_field",
        "instances: a batch without any can't reach its goal",
        {
          ...{ field: "instances", mend },
        },
      );
    }
    return {
      ...{
        plan,
        base,
        client,
        source: address,
        open: body.open ?? false,
        carryFrom: body.carry_from ?? null,
        series: body.series ?? null,
      },
      id: id ?? randomUUID(),
      bodySha256: sha256(canonicalJson(body)),
      groups: acceptInstances({ base, client }, body.instances ?? []),
    };
  };
  /** A row that a batch with these options has read. */
  const acceptRow = (options: string, row: unknown): GroupSubmission => {
    const { base, client }: GroupOrigin = JSON.parse(options);
    const instance = parseBody(rolloutRequestSchema.shape.instance, row);
    return acceptGroup({ ...base, instance }, client);
  };
  return { acceptBatch, acceptInstances, acceptRow };
}

/** @throws ServiceError `invalid_field` for a rule that can't be read, and for a plan that no group could meet */
function checkPlan(plan: GroupPlan): void {
  if (plan.completeAt > plan.numSamples) throw tooManyRewards(plan);
  const rules = rulesOf(plan);
  if (isInformative(createGroup(rules), rules) !== false) return;
  const message = `informative: no rewards of ${plan.completeAt} rollouts could meet "${plan.informative}"`;
  const mend = 'ask for more rollouts in a group, or by {"rule": "mean >= 0"} for any';
  throw new ServiceError("invalid_field", message, { field: "informative", mend });
}

function tooManyRewards({ completeAt, numSamples }: GroupPlan): ServiceError {
  const message = `complete_at: ${numSamples} rollouts never give ${completeAt} rewards`;
  const mend = `ask for at most ${numSamples}, or raise num_samples`;
  return new ServiceError("invalid_field", message, { field: "complete_at", mend });
}

function tooFewRollouts(numSamples: number): ServiceError {
  const message = `max_rollouts: one group has ${numSamples} rollouts at once`;
  const mend = "raise max_rollouts, or lower num_samples";
  return new ServiceError("invalid_field", message, { field: "max_rollouts", mend });
}

function thrownAway(unfinished: string): ServiceError {
  const message = `unfinished: a paused rollout could not be gone on with after "${unfinished}"`;
  const mend = 'use "keep" or "park", or no max_turns_per_batch and max_tokens_per_batch';
  return new ServiceError("invalid_field", message, { field: "unfinished", mend });
}

function openSource(): ServiceError {
  const message = "source: a batch with a source takes no other instances later";
  return new ServiceError("invalid_field", message, { field: "source", mend: "leave open out" });
}

/** The same row has the same key whatever batch it is in: by its own id, or else by its content. */
function instanceKey(instance: GroupRequest["instance"]): string {
  const { data_source, instance_id: id } = instance;
  const named = typeof id === "string" || typeof id === "number";
  return `${data_source}:${named ? id : sha256(canonicalJson(instance)).slice(0, 20)}`;
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

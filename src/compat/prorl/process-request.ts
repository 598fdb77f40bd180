import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { type RolloutRequest, rolloutIdSchema } from "../../protocol/rollout.ts";
import { readSamplingParams, type SamplingParams } from "./sampling-params.ts";

const bodySchema = z.looseObject({
  instance: z.record(z.string(), z.unknown()),
  sampling_params: z.record(z.string(), z.unknown()).nullish(),
  job_id: rolloutIdSchema.nullish(),
});

export type ProcessRequest = {
  instance: RolloutRequest["instance"];
  params: SamplingParams;
  /** The client's name for the call, to cancel it by. */
  jobId: string | null;
  /** As it was sent: numbers stay numbers. */
  echo: { instance_id: string | number | null; trajectory_id: string | number | null };
};

/** The shape of a body is wrong: clients are answered with 422 instead of 400. */
export class WrongShape extends ServiceError {}

/** @throws WrongShape; ServiceError `unknown_field` or `invalid_field` for a sampling parameter */
export function readProcessRequest(body: unknown): ProcessRequest {
  const parsed = bodySchema.safeParse(body);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const field = issue?.path.join(".") || "body";
    throw new WrongShape("invalid_field", `${field}: ${issue?.message ?? "invalid"}`, { field });
  }
  const { sampling_params, job_id } = parsed.data;
  const instance = withoutNulls(parsed.data.instance);
  const data_source = instance.data_source ?? "swebench";
  if (typeof data_source !== "string" || data_source === "") {
    const message = "instance.data_source: must be a name";
    throw new WrongShape("invalid_field", message, { field: "instance.data_source" });
  }
  return {
    instance: { ...instance, data_source },
    params: readSamplingParams(sampling_params),
    jobId: job_id ?? null,
    echo: {
      instance_id: scalar(instance.instance_id) ?? nameFrom(instance),
      trajectory_id: scalar(instance.trajectory_id),
    },
  };
}

/** Datasets that were merged from several carry `null` for the keys of the others. */
function withoutNulls(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null));
}

function scalar(value: unknown): string | number | null {
  return typeof value === "string" || typeof value === "number" ? value : null;
}

/** Rows without an `instance_id` are named by where they come from. */
function nameFrom({ data_source, extra_info }: Record<string, unknown>): string | null {
  if (typeof extra_info !== "object" || extra_info === null) return null;
  const { name, split, index } = extra_info as Record<string, unknown>;
  const parts = [data_source, name, split, index].map(scalar);
  const named = parts.filter((part) => part !== null);
  return index === undefined || named.length < 2 ? null : named.join("_");
}

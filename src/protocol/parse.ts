import type { z } from "zod";
import { ServiceError } from "../errors.ts";
import { fieldPath } from "../lib/field-path.ts";

/**
 * Checks a request's body. The error names the first field that is wrong, in path notation
 * (`rollouts[2].limits.run_ms`).
 *
 * @throws ServiceError `invalid_field`, `unknown_field`
 */
export function parseBody<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  if (issue?.code === "unrecognized_keys") {
    const field = fieldPath([...issue.path, issue.keys[0] ?? ""]);
    const mend = "remove it, or correct its spelling";
    throw new ServiceError("unknown_field", `unknown field: ${field}`, { field, mend });
  }
  const field = fieldPath(issue?.path ?? []) || "body";
  throw new ServiceError("invalid_field", `${field}: ${whyOf(issue)}`, { field });
}

function whyOf(issue: z.core.$ZodIssue | undefined): string {
  const isMissing = issue?.code === "invalid_type" && issue.message.endsWith("received undefined");
  return isMissing ? "is missing" : (issue?.message ?? "invalid");
}

/** Puts a place in front of the field that an error names: one of many in a body. */
export function inField<T>(place: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.field === undefined || place === "") throw error;
    const field = `${place}.${error.field}`;
    const mend = error.mend === undefined ? {} : { mend: error.mend };
    const details = error.details === undefined ? {} : { details: error.details };
    throw new ServiceError(error.code, `${place}: ${error.message}`, {
      field,
      ...mend,
      ...details,
    });
  }
}

/** The same value gives the same text, whatever the order of its keys. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(sorted(value));
}

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, sorted((value as never)[key])]));
}

import type { z } from "zod";
import { ServiceError } from "../errors.ts";
import { fieldPath } from "../lib/field-path.ts";

/** @throws ServiceError `invalid_field` naming the first field of the row that is wrong. */
export function parseRow<S extends z.ZodType>(
  schema: S,
  row: Record<string, unknown>,
): z.output<S> {
  const parsed = schema.safeParse(row);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = fieldPath(["instance", ...(issue?.path ?? [])]);
  throw new ServiceError("invalid_field", `${path}: ${issue?.message ?? "is invalid"}`, {
    field: path,
  });
}

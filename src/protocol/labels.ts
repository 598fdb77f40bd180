import { z } from "zod";

const MAX_LABELS = 16;

const name = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/, "must be 1-63 of A-Z a-z 0-9 . _ / -");
const value = z
  .string()
  .regex(/^[A-Za-z0-9._:/@+= -]{0,127}$/, "must be 0-127 of A-Z a-z 0-9 . _ : / @ + = - and space");

/** What a client calls its rollouts by, to list and to cancel many of them. */
export const labelsSchema = z
  .record(name, value)
  .refine((labels) => Object.keys(labels).length <= MAX_LABELS, `at most ${MAX_LABELS} labels`);

/** Labels in a query: `?label=step:7,run:a` means those that have both. */
export const labelQuery = z
  .string()
  .transform((text, context) => {
    const pairs = text.split(",").map((pair) => {
      const colon = pair.indexOf(":");
      return [pair.slice(0, Math.max(0, colon)), pair.slice(colon + 1)] as const;
    });
    if (pairs.some(([key]) => key === "")) {
      context.addIssue({ code: "custom", message: "must be name:value[,name:value...]" });
      return z.NEVER;
    }
    return Object.fromEntries(pairs);
  })
  .pipe(labelsSchema);

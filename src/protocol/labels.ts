import { z } from "zod";

const MAX_LABELS = 16;

const name = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/, "must be 1-63 of A-Z a-z 0-9 . _ / -");
const value = z
  .string()
  .regex(/^[A-Za-z0-9._:/@+= -]{0,127}$/, "must be 0-127 of A-Z a-z 0-9 . _ : / @ + = - and space");

const bounded = (labels: object) => Object.keys(labels).length <= MAX_LABELS;

/** What a client calls its rollouts by, to list and to cancel many of them. */
export const labelsSchema = z.record(name, value).refine(bounded, `at most ${MAX_LABELS} labels`);

/** Those of a filter: at least one, because none would mean every rollout. */
export const someLabels = labelsSchema.refine(
  (labels) => Object.keys(labels).length > 0,
  "must have at least one label",
);

const pair = z.tuple([name, value]);

/** Labels in a query: `?label=step:7,run:a` means those that have both. */
export const labelQuery = z.string().transform((text, context) => {
  const refuse = (message: string) => {
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  };
  const labels = new Map<string, string>();
  for (const part of text.split(",")) {
    const colon = part.indexOf(":");
    if (colon < 1) return refuse("must be name:value[,name:value...]");
    const parsed = pair.safeParse([part.slice(0, colon), part.slice(colon + 1)]);
    if (!parsed.success) return refuse(parsed.error.issues[0]?.message ?? "is no label");
    const [key, wanted] = parsed.data;
    if (labels.has(key)) return refuse(`has ${key} twice`);
    labels.set(key, wanted);
  }
  if (labels.size > MAX_LABELS) return refuse(`at most ${MAX_LABELS} labels`);
  return Object.fromEntries(labels);
});

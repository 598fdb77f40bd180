import type { z } from "zod";

/** What is wrong with a value, to follow its name in a sentence. */
export function plainIssue(issue: z.core.$ZodIssue | undefined): string {
  if (issue?.code === "too_small") {
    const { minimum, inclusive = true, origin } = issue;
    if (origin === "string") return "must not be empty";
    return inclusive ? `must be at least ${minimum}` : `must be more than ${minimum}`;
  }
  if (issue?.code === "too_big") return `must be at most ${issue.maximum}`;
  if (issue?.code === "invalid_type") {
    return issue.expected === "int" ? "must be a whole number" : `must be a ${issue.expected}`;
  }
  if (issue?.code === "invalid_value") return `must be one of ${issue.values.join(", ")}`;
  return issue?.message ?? "can't be";
}

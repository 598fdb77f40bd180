import type { ErrorBody } from "../errors.ts";
import type { Job } from "./job.ts";

/** The wait after a first failure; it doubles with each further one. Units: milliseconds. */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;

/**
 * Whether the same job may do better next time. What the policy did it may do again, and its failure is a
 * result; what the client asked for stays wrong.
 */
export function isWorthRetrying({ retryable, boundary }: ErrorBody): boolean {
  return retryable && boundary !== "policy" && boundary !== "client";
}

/**
 * How long a job that just failed waits. Jobs that failed together come back spread over half of the time;
 * the spread is drawn from the id, so that `transition` stays a function of its arguments.
 */
export function backoffMs({ id, attempt, failures }: Job): number {
  const fullMs = Math.min(FIRST_WAIT_MS * 2 ** failures.length, LONGEST_WAIT_MS);
  const drawn = Bun.hash.xxHash32(`${id}.${attempt}`) / 2 ** 32;
  return Math.round(fullMs * (0.5 + 0.5 * drawn));
}

import { ServiceError } from "../errors.ts";

/** A program's words, and what to do about them. */
export type Mends = [RegExp, string][];

/** What the supervisor says when it can't confine itself. */
const SUPERVISOR: Mends = [
  [
    /(seccomp filters|no_new_privs) (are|is) not available/,
    "Run the service on a kernel with seccomp filters, and not in a container that forbids them.",
  ],
  [
    /can't be (dropped|sealed|bounded)/,
    "Run the service as an ordinary user: only a service of root's needs this.",
  ],
];

/** A start that failed for what the node lacks will fail again: says so, and what to do. */
export function asUnavailable(error: unknown, mends: Mends): unknown {
  if (!(error instanceof ServiceError) || error.code !== "sandbox_start_failed") return error;
  const mend = [...SUPERVISOR, ...mends].find(([words]) => words.test(error.message))?.[1];
  if (mend === undefined) return error;
  return new ServiceError("sandbox_unavailable", error.message, { mend, cause: error });
}

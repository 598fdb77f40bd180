import { ServiceError } from "../errors.ts";
import type { Store } from "../store/store.ts";
import type { Submission } from "./parts.ts";

/**
 * Which of `submissions` are new; the others repeat what was accepted before, here or in the same request.
 *
 * @throws ServiceError `id_conflict`
 */
export function newAmong(store: Store, submissions: Submission[]): Set<Submission> {
  const fresh = new Set<Submission>();
  const bodies = new Map<string, string>();
  for (const [index, submission] of submissions.entries()) {
    const { id } = submission.job;
    const known = bodies.get(id) ?? store.jobById(id)?.body_sha256;
    if (known === undefined) fresh.add(submission);
    else if (known !== submission.row.bodySha256) {
      throw new ServiceError("id_conflict", `rollout "${id}" exists with another body`, {
        field: `rollouts[${index}].id`,
        mend: "use a new id for a new rollout",
      });
    }
    bodies.set(id, submission.row.bodySha256);
  }
  return fresh;
}

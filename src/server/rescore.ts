import { createHash } from "node:crypto";
import { ServiceError } from "../errors.ts";
import { readLife } from "../jobs/life.ts";
import type { Submission } from "../pipeline/parts.ts";
import type { WorkRow } from "../store/tables.ts";

/**
 * A job that begins with EVAL and scores again what RUN of another one recorded. The other job stays as it is, with
 * the verdict that it has.
 *
 * @throws ServiceError `not_rescorable`
 */
export function rescoreOf(row: WorkRow, id: string, client: string): Submission {
  const { outcome } = row;
  if (outcome === null) throw notRescorable(row, "has no outcome of RUN", "run it again");
  if (row.eval_from_record === 0) {
    const why = "was scored in the agent's sandbox, which is gone";
    throw notRescorable(row, why, "run it again");
  }
  const of = row.rescore_of ?? row.id;
  const { limits, numAttempts } = readLife(row.life);
  return {
    job: {
      id,
      limits,
      numAttempts,
      evalFromRecord: true,
      stage: "eval",
    },
    row: {
      bodySha256: createHash("sha256").update(`rescore ${of} ${outcome}`).digest("hex"),
      taskKind: row.task_kind,
      usesSandbox: false,
      scoredInFresh: row.eval_from_record === 2,
      needsBackend: false,
      image: row.image,
      instance: row.instance,
      options: row.options,
      rescore: { of, outcome },
      client,
      priority: row.priority,
    },
  };
}

function notRescorable({ id }: WorkRow, why: string, mend: string): ServiceError {
  return new ServiceError("not_rescorable", `rollout "${id}" ${why}`, { field: "id", mend });
}

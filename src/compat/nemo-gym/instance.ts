import { ServiceError } from "../../errors.ts";
import type { RolloutRequest } from "../../protocol/rollout.ts";

type Row = Record<string, unknown>;
type Instance = RolloutRequest["instance"];

/**
 * The instance in a row of NeMo Gym's datasets. Its own environments are known by their fields; a row that says
 * `data_source` is one of ours as it stands.
 *
 * @throws ServiceError `unknown_task_kind`
 */
export function instanceOf(row: Row, problem: string): Instance {
  if (typeof row.data_source === "string") return row as Instance;
  const { expected_answer, options } = row;
  if (typeof expected_answer === "string" || typeof expected_answer === "number") {
    if (options === undefined) return mathInstance(problem, String(expected_answer));
  }
  throw new ServiceError("unknown_task_kind", "the row's fields are of no task kind here", {
    field: "data_source",
    mend: "add data_source with one of the task kinds of the README, and the fields it asks for",
  });
}

function mathInstance(problem: string, truth: string): Instance {
  return {
    data_source: "math",
    prompt: [{ role: "user", content: problem }],
    reward_model: { ground_truth: truth },
  };
}

import { ServiceError } from "../errors.ts";
import type { TaskKind } from "./task-kind.ts";

/** What a rollout is scored with instead of an agent's work: the row's own solution, or no work at all. */
export type Golden = "solution" | "nothing";

/**
 * A kind without agent, model and the agent's sandbox, whose RUN hands over what `golden` says: how it is found
 * out whether a row, its image and its tests fit together.
 *
 * @throws ServiceError `invalid_field` where the kind's rows have no solution.
 */
export function goldenKind<I>(kind: TaskKind<I>, which: Golden): TaskKind<I> {
  const { golden } = kind;
  if (!golden) {
    const message = `rows of ${kind.name} have no solution of their own`;
    const mend = "give --golden rows of swe or harbor";
    throw new ServiceError("invalid_field", message, { field: "golden", mend });
  }
  return {
    ...kind,
    needsBackend: false,
    sandboxes(instance, settings) {
      const plan = kind.sandboxes(instance, settings);
      const evaluation = plan.evaluation === "agent" ? "fresh" : plan.evaluation;
      return { ...plan, agent: false, evaluation };
    },
    init: async () => {},
    run: async (instance) => golden(instance, which),
    evaluate: (...args) => kind.evaluate(...args),
  };
}

import { ServiceError } from "../errors.ts";
import type { TaskKind } from "./task-kind.ts";

/**
 * What a rollout is scored with instead of an agent's work: the row's own solution, handed to EVAL or put into the
 * agent's sandbox and taken from there as an agent's work is, or no work at all.
 */
export const GOLDEN = ["solution", "nothing", "solution_by_agent"] as const;
export type Golden = (typeof GOLDEN)[number];

/** Those that rows of a kind can be scored with. */
export function goldensOf({ golden, solve }: TaskKind<unknown>): Golden[] {
  if (!golden) return solve ? ["solution", "nothing"] : [];
  return GOLDEN.filter((which) => which !== "solution_by_agent" || solve !== undefined);
}

/**
 * A kind without agent and model, whose RUN hands over what `golden` says: how it is found out whether a row, its
 * image and its tests fit together. An agent's sandbox is there only for a solution that goes the agent's way.
 *
 * @throws ServiceError `invalid_field` where the kind's rows have no such solution.
 */
export function goldenKind<I>(kind: TaskKind<I>, which: Golden): TaskKind<I> {
  const { golden, solve } = kind;
  if (!golden && solve) {
    const work = which === "nothing" ? async () => {} : solve;
    return {
      ...kind,
      needsBackend: false,
      sandboxes(instance, settings) {
        if (which !== "nothing") kind.needSolution?.(instance);
        return kind.sandboxes(instance, settings);
      },
      run: solvedBy(kind, work),
    };
  }
  if (!golden) {
    const message = `rows of ${kind.name} have no solution of their own`;
    const mend = "give --golden rows of swe or harbor";
    throw new ServiceError("invalid_field", message, { field: "golden", mend });
  }
  if (which === "solution_by_agent") {
    if (solve) return { ...kind, needsBackend: false, run: solvedBy(kind, solve) };
    const message = `a solution of ${kind.name} does not go the agent's way`;
    throw new ServiceError("invalid_field", message, { field: "golden", mend: "use solution" });
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

/** RUN as it is for an agent, with `solve` in the agent's place. */
function solvedBy<I>(
  kind: TaskKind<I>,
  solve: NonNullable<TaskKind<I>["solve"]>,
): TaskKind<I>["run"] {
  return async (instance, context) =>
    await kind.run(instance, {
      ...context,
      agent: async ({ onFinish }) => {
        for (let part = 0; ; part++) {
          await solve(instance, context, part);
          if (((await onFinish?.("")) ?? null) === null) break;
        }
        return { stopReason: "done", finalMessage: null };
      },
    });
}

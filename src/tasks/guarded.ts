import type { AgentOutcome } from "../agent/loop.ts";
import { ERRORS, type ErrorCode, ServiceError } from "../errors.ts";
import type { Message } from "../inference/engine.ts";
import type { AgentTask } from "./drive-agent.ts";
import {
  agentTaskProblem,
  instanceProblem,
  messagesProblem,
  outcomeProblem,
  planProblem,
  type ReturnCheck,
  verdictProblem,
  WANTED,
} from "./kind-returns.ts";
import { ModuleSource, thrownDetails, told } from "./module-source.ts";
import type { RunContext, TaskKind } from "./task-kind.ts";

/**
 * A user's kind as the service calls it. Its modules can't import our errors, so that what they throw is told by the
 * place where it happened: a row that is refused, an environment that failed, a verifier without a verdict. An error
 * whose `code` is one of ours keeps it. What they return is looked at before anything is made of it.
 */
export function guarded(kind: TaskKind<unknown>, path: string): TaskKind<unknown> {
  const guard = new Guard(kind.name, path);
  const { name, dataSources, needsBackend, tools, limitsAreVerdicts, golden } = kind;
  return {
    // By name: what a class has on its prototype would be lost in a copy.
    ...{ name, dataSources, needsBackend, tools, module: path },
    ...(limitsAreVerdicts === undefined ? {} : { limitsAreVerdicts }),
    parse: (row) => guard.now("parse", WANTED.parse, instanceProblem, () => kind.parse(row)),
    sandboxes: (...given) =>
      guard.now("sandboxes", WANTED.sandboxes, planProblem, () => kind.sandboxes(...given)),
    init: async (...given) => guard.later("init", "task_failed", async () => kind.init(...given)),
    run: async (instance, context) => {
      const asked = guard.context(context);
      const run = async () => kind.run(instance, asked);
      const outcome = await guard.later("run", "task_failed", run);
      guard.require("run", "task_failed", WANTED.outcome, outcomeProblem, outcome);
      return outcome;
    },
    ...(golden
      ? {
          golden: (...given) =>
            guard.now("golden", WANTED.outcome, outcomeProblem, () => golden.apply(kind, given)),
        }
      : {}),
    evaluate: async (...given) => {
      const evaluate = async () => kind.evaluate(...given);
      const verdict = await guard.later("evaluate", "verifier_failed", evaluate);
      guard.require("evaluate", "verifier_failed", WANTED.verdict, verdictProblem, verdict);
      return verdict;
    },
  };
}

type Member = "parse" | "sandboxes" | "init" | "run" | "evaluate" | "golden";

const CALLED: Record<Member, string> = {
  parse: "`parse`",
  sandboxes: "`sandboxes`",
  init: "`init`",
  run: "`run`",
  evaluate: "the verifier",
  golden: "`golden`",
};

class Guard {
  readonly #kind: string;
  readonly #path: string;

  constructor(kind: string, path: string) {
    this.#kind = kind;
    this.#path = path;
  }

  now<T>(member: Member, wanted: string, check: ReturnCheck, work: () => T): T {
    let value: T;
    try {
      value = work();
    } catch (error) {
      throw this.#typed(error, "invalid_field");
    }
    // Asked for by a request, whose answer is an error of the service's then.
    this.require(member, "task_module_invalid", wanted, check, value);
    return value;
  }

  async later<T>(member: Member, code: ErrorCode, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof ServiceError) throw error;
      throw this.#typed(error, code, member);
    }
  }

  /** @throws ServiceError `code` that says what was returned, where, and what is wanted */
  require(
    member: Member,
    code: ErrorCode,
    wanted: string,
    check: ReturnCheck,
    value: unknown,
  ): void {
    const problem = check(value);
    if (problem === null) return;
    const place = this.#place(member);
    const message = `${CALLED[member]} of kind ${this.#kind} returned ${problem} (${told(place)})`;
    throw new ServiceError(code, `${message}; ${wanted}`, { details: place });
  }

  /** The kind's view of its rollout, which looks at what the kind asks for. */
  context(context: RunContext): RunContext {
    const ask = (check: ReturnCheck, value: unknown, wanted: string) => {
      const problem = check(value);
      if (problem === null) return;
      const place = this.#place("run");
      const message = `\`run\` of kind ${this.#kind} asked for ${problem} (${told(place)}); ${wanted}`;
      throw new ServiceError("task_failed", message, { details: place });
    };
    return {
      ...context,
      agent: async (task: AgentTask): Promise<AgentOutcome> => {
        ask(agentTaskProblem, task, WANTED.agent);
        return await context.agent(task);
      },
      converse: async (prompt: Message[], tools) => {
        ask(messagesProblem, prompt, "messages are {role: string, content: string}");
        return await context.converse(prompt, tools ?? []);
      },
    };
  }

  #place(member: Member) {
    return new ModuleSource(this.#path).member(this.#kind, member);
  }

  /** A mistake in the module's code is told with its line; a refusal that it words itself needs none. */
  #typed(error: unknown, fallback: ErrorCode, member?: Member): ServiceError {
    if (error instanceof ServiceError) return error;
    const { code, field } = (error ?? {}) as { code?: unknown; field?: unknown };
    const known =
      typeof code === "string" &&
      Object.hasOwn(ERRORS, code) &&
      (fallback !== "invalid_field" || ERRORS[code as ErrorCode].status >= 400);
    const details = { file: this.#path, ...thrownDetails(error) };
    const said = error instanceof Error ? error.message : `it threw ${String(error)}`;
    const place = "line" in details ? ` (${details.file}:${details.line})` : ` (${this.#path})`;
    const isRefusal = fallback === "invalid_field" && error instanceof Error && !isMistake(error);
    const message = isRefusal
      ? said
      : `${isMistake(error) ? `${error.name}: ` : ""}${said}${place}`;
    const named = typeof field === "string" ? field : "instance";
    return new ServiceError(known ? (code as ErrorCode) : fallback, message, {
      cause: error,
      details: { ...details, ...(member === undefined ? {} : { function: member }) },
      ...(fallback === "invalid_field" ? { field: named } : {}),
    });
  }
}

function isMistake(error: unknown): error is Error {
  return [TypeError, ReferenceError, RangeError, SyntaxError].some((type) => error instanceof type);
}

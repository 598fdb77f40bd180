import { ServiceError } from "../../errors.ts";
import type { EngineRoutes } from "./engine-routes.ts";

type Ask<A> = (routes: EngineRoutes, signal: AbortSignal) => Promise<A>;

/** Thrown where an answer is needed that has not been asked for yet. */
class Missing extends Error {
  readonly key: string;
  readonly ask: Ask<unknown>;

  constructor(key: string, ask: Ask<unknown>) {
    super("an answer is missing");
    this.key = key;
    this.ask = ask;
  }
}

/** Far more than the shape of a template takes. */
const MAX_QUESTIONS = 2_000;

/**
 * Lets code that is written as if all answers were at hand work with answers that have to be fetched: it is
 * run, breaks off at the first that is missing, and is run again once that is there.
 */
export class RemoteAnswers {
  #answers: Map<string, unknown> | null = null;

  /** @throws what `work` and the questions throw; the abort reason of `signal` */
  async settle<T>(work: () => T, routes: EngineRoutes, signal: AbortSignal): Promise<T> {
    const answers = new Map<string, unknown>();
    for (let asked = 0; asked < MAX_QUESTIONS; asked++) {
      let missing: Missing;
      this.#answers = answers;
      try {
        return work();
      } catch (error) {
        if (!(error instanceof Missing)) throw error;
        missing = error;
      } finally {
        this.#answers = null;
      }
      signal.throwIfAborted();
      // A refusal is an answer too: templates are asked what they take.
      answers.set(missing.key, await missing.ask(routes, signal).catch(refusalOrThrow));
    }
    throw new Error("the engine was asked without end");
  }

  /** The answer to a question that `key` stands for. Only within `settle`. */
  need<A>(key: string, ask: Ask<A>): A {
    if (!this.#answers) throw new Error("answers are fetched within settle only");
    if (!this.#answers.has(key)) throw new Missing(key, ask);
    const answer = this.#answers.get(key);
    if (answer instanceof ServiceError) throw answer;
    return answer as A;
  }
}

function refusalOrThrow(error: unknown): ServiceError {
  if (error instanceof ServiceError && error.code === "template_refused") return error;
  throw error;
}

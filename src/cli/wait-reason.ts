import { printError } from "../lib/print.ts";
import type { BackendView } from "../server/parts.ts";
import type { ApiClient, StatusView } from "./api-client.ts";

/** Says, each reason once, why no rollout gets on in RUN. */
export class WaitReason {
  readonly #client: ApiClient;
  readonly #say: (line: string) => unknown;
  #said = "";

  constructor(client: ApiClient, say: (line: string) => unknown = (line) => printError(line)) {
    this.#client = client;
    this.#say = say;
  }

  async look({ stages, weights }: Pick<StatusView, "stages" | "weights">): Promise<void> {
    const reason = weights.paused === null ? await this.#whyNoneRuns(stages) : PAUSED;
    if (reason === null || reason === this.#said) return;
    this.#said = reason;
    this.#say(`\n${reason}\n`);
  }

  async #whyNoneRuns({ run }: StatusView["stages"]): Promise<string | null> {
    if (!run || run.pending === 0 || run.active > 0) return null;
    return whyNoBackend((await this.#client.backends()).backends);
  }
}

const PAUSED =
  "calls of the model wait for new weights: whoever paused them has to announce some, or POST /v1/weights/resume";

/** Null where at least one takes rollouts. */
export function whyNoBackend(backends: BackendView[]): string | null {
  if (backends.length === 0) {
    return "rollouts wait for an inference server: add one with `rolloutd backends add URL`";
  }
  if (backends.some(({ state }) => state === "healthy" || state === "trial")) return null;
  const each = backends.map(({ id, state, why }) => `${id} is ${state}${why ? ` (${why})` : ""}`);
  return `rollouts wait for an inference server: ${each.join("; ")}`;
}

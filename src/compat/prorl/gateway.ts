import { ServiceError } from "../../errors.ts";
import type { Submission } from "../../pipeline/parts.ts";
import type { Scheduler } from "../../pipeline/scheduler.ts";
import type { EngineRoute, RolloutRequest } from "../../protocol/rollout.ts";
import { viewRollout } from "../../protocol/view.ts";
import type { Store } from "../../store/store.ts";
import type { JobRow } from "../../store/tables.ts";
import type { Outcome } from "../../trajectory/record.ts";
import { finishedRollout, storedTrajectory, unfinishedOf } from "../finished.ts";
import { type Call, Calls, ID_PREFIX } from "./calls.ts";
import { type ProcessRequest, readProcessRequest } from "./process-request.ts";
import { type ProrlResult, prorlResult } from "./result.ts";
import { API, toRollout } from "./to-rollout.ts";

/** The inference servers that clients named, as they wrote them. */
export interface Addresses {
  list(): string[];
  /** Adding it again changes nothing. @throws ServiceError `invalid_field`, `address_forbidden` */
  add(address: string): Promise<void>;
  clear(): void;
}

export type ProrlSettings = {
  /** The work of one rollout in its three stages together; waiting does not count. */
  timeoutMs: number;
  disconnectGraceMs: number;
  keepMs: number;
  /** Whether assistant messages carry their whole prompts. */
  inputIds: boolean;
};

export type ProrlParts = {
  store: Store;
  scheduler: Scheduler;
  addresses: Addresses;
  accept(request: RolloutRequest, route: EngineRoute): Submission;
  /** The folder of a tokenizer that was named by path or Hugging Face name. @throws ServiceError */
  tokenizerFolder(name: string): string;
  settings: ProrlSettings;
};

export const NOT_RUNNING = "Server is not running. Please start the server first.";
export const NO_ADDRESSES =
  "No LLM server addresses configured. Please add at least one LLM server address.";

/** The state behind ProRL's routes: whether it was started, and which calls are open. */
export class ProrlGateway {
  readonly #parts: ProrlParts;
  readonly #calls: Calls;
  #state: "stopped" | "running" | "stopping" = "stopped";

  constructor(parts: ProrlParts) {
    this.#parts = parts;
    this.#calls = new Calls({
      ...parts.settings,
      cancel: (rolloutId) => void parts.scheduler.cancel(rolloutId),
    });
  }

  /**
   * Ends what a predecessor left: its clients' connections died with it, and they start over. Which those are is
   * read at once, before new ones come.
   */
  endLeftovers(): Promise<void> {
    const ids = [...unfinishedOf(this.#parts, API, ID_PREFIX)].map(({ id }) => id);
    return this.#parts.scheduler.cancelAll(ids);
  }

  get running(): boolean {
    return this.#state === "running";
  }

  /** False when it was running. */
  start(): boolean {
    if (this.#state !== "stopped") return false;
    this.#state = "running";
    return true;
  }

  /** Cancels what is under way and resolves when all of it has ended. */
  async stop(): Promise<void> {
    this.#state = "stopping";
    try {
      await Promise.all([...this.#calls.open].map((call) => this.#end(call)));
    } finally {
      this.#calls.forgetAll();
      this.#state = "stopped";
    }
  }

  /** False when no open call has that id. */
  async cancel(jobId: string, client: string): Promise<boolean> {
    const call = this.#calls.byJobId(jobId, client);
    if (!call || !(await wasAccepted(call))) return false;
    await this.#parts.scheduler.cancel(call.rolloutId);
    return true;
  }

  async #end(call: Call): Promise<void> {
    if (!(await wasAccepted(call))) return;
    await this.#parts.scheduler.cancel(call.rolloutId);
    await finishedRollout(this.#parts, call.rolloutId, new AbortController().signal);
  }

  /**
   * One rollout from its row to its result. Null when the client left before the end.
   *
   * @throws ServiceError when the rollout can't be taken on; what happens after that is in the result.
   */
  async process(body: unknown, client: string, signal: AbortSignal): Promise<ProrlResult | null> {
    // Asked again here: it may have been stopped while the body came.
    if (!this.running) throw new ServiceError("not_ready", NOT_RUNNING);
    const request = readProcessRequest(body);
    const { addresses, scheduler } = this.#parts;
    if (addresses.list().length === 0) {
      throw new ServiceError("not_ready", NO_ADDRESSES);
    }
    const { call, fresh } = this.#calls.enter(request.jobId, body, client);
    try {
      if (fresh) {
        const { job, row } = this.#submission(request, call.rolloutId);
        call.accepted = scheduler.submit([{ job, row: { ...row, client } }]);
      }
      await call.accepted;
      const row = await finishedRollout(this.#parts, call.rolloutId, signal);
      if (!row) {
        this.#calls.left(call);
        return null;
      }
      const result = prorlResult(request, viewRollout(row), storedTrajectory(this.#parts, row), {
        inputIds: this.#parts.settings.inputIds,
        patch: patchOf(row),
      });
      this.#calls.answered(call);
      return result;
    } catch (error) {
      this.#calls.answered(call);
      throw inItsWords(error, request);
    }
  }

  #submission(request: ProcessRequest, id: string): Submission {
    const { accept, tokenizerFolder, settings } = this.#parts;
    const { tokenizer } = request.params;
    const modelDir = tokenizer === null ? null : tokenizerFolder(tokenizer);
    const { timeoutMs } = settings;
    const { rollout, route } = toRollout(request, { id, modelDir, timeoutMs });
    return accept(rollout, route);
  }
}

/** Its clients know an unknown kind of row by what upstream says. */
function inItsWords(error: unknown, { instance }: ProcessRequest): unknown {
  if (!(error instanceof ServiceError && error.code === "unknown_task_kind")) return error;
  const unregistered = `Dataset type ${instance.data_source} is not registered`;
  const message = `Invalid dataset type or function not registered: ${unregistered}`;
  const { field, mend } = error;
  return new ServiceError(error.code, message, { ...(field && { field }), ...(mend && { mend }) });
}

async function wasAccepted({ accepted }: Call): Promise<boolean> {
  return accepted.then(
    () => true,
    () => false,
  );
}

function patchOf({ outcome }: JobRow): string | null {
  return outcome === null ? null : ((JSON.parse(outcome) as Outcome).patch ?? null);
}

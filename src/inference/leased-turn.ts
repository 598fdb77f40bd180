import { ServiceError } from "../errors.ts";
import { pause } from "../lib/abortable.ts";
import { isUnknownThere } from "./refusal.ts";
import type { Lease, Turns } from "./turn-gate.ts";
import { TRIED_AGAIN, type TurnEnded } from "./turn-messages.ts";

export type CallResult<R> = {
  reply: R;
  /** False where the turn is to be gone on with under another lease. */
  over: boolean;
  usage: Pick<TurnEnded, "contextTokens" | "sampledTokens" | "load">;
};

export type LeasedCall<R> = {
  jobId: string;
  attempt: number;
  /** Units: tokens of the next call's prompt; null where the engine makes it. */
  contextTokens(): number | null;
  /** @param index counts the calls of this turn */
  call(lease: Lease, index: number, signal: AbortSignal): Promise<CallResult<R>>;
};

/** Before a call is tried the third time, and twice as long before each further one. */
const PAUSE_MS = 500;
const NO_USAGE = { contextTokens: null, sampledTokens: 0, load: null };

/**
 * One turn of a rollout, in as many calls as it takes: each under a lease, wherever the desk sends it. A
 * call whose engine failed is tried again, and one that was stopped is gone on with.
 *
 * @returns what the last call gave, and how long the turn waited for leave
 * @throws ServiceError `engine_*`, and whatever else `call` throws; the abort reason of `signal`
 */
export async function takeTurn<R>(
  turns: Turns,
  { jobId, attempt, contextTokens, call }: LeasedCall<R>,
  signal: AbortSignal,
): Promise<{ reply: R; backendId: string; waitedMs: number }> {
  let failed: unknown = null;
  const failedOn: string[] = [];
  let waitedMs = 0;
  for (let index = 0; ; index++) {
    if (failedOn.length > 1) await pause(PAUSE_MS * 2 ** (failedOn.length - 2), signal);
    const startMs = performance.now();
    const wanted = { jobId, attempt, contextTokens: contextTokens(), failed, failedOn };
    const lease = await turns.enter(wanted, signal);
    waitedMs += performance.now() - startMs;
    const backendId = lease.backend.id;
    try {
      const { reply, over, usage } = await call(lease, index, signal);
      lease.end(usage);
      failed = null;
      if (over) return { reply, backendId, waitedMs };
    } catch (thrown) {
      const error = asChanged(thrown);
      const ended = lease.stopped.aborted && !signal.aborted ? STOPPED : error;
      lease.end(NO_USAGE, ended);
      signal.throwIfAborted();
      if (ended === STOPPED) continue;
      if (!(error instanceof ServiceError) || !TRIED_AGAIN.has(error.code)) throw error;
      failed = error;
      failedOn.push(backendId);
    }
  }
}

/** An engine that refuses what its probe found is to be probed again, and the call to be tried again. */
function asChanged(thrown: unknown): unknown {
  if (!(thrown instanceof ServiceError) || !isUnknownThere(thrown)) return thrown;
  const { message, mend } = thrown;
  return new ServiceError("engine_changed", message, mend === undefined ? {} : { mend });
}

/** Says nothing about the engine. */
const STOPPED = new ServiceError("engine_aborted", "the call was stopped for new weights");

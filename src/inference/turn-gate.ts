import { fromErrorBody, ServiceError, toErrorBody } from "../errors.ts";
import type { Backend } from "./engine.ts";
import type { CallKey, FromTurn, ToTurn, TurnEnded, TurnWanted } from "./turn-messages.ts";

/** Leave to call a model once. */
export type Lease = {
  backend: Backend;
  weightVersion: string | null;
  /** Aborts when the call is to end now and to be gone on with under another lease. */
  stopped: AbortSignal;
  /** Whether the weights changed since. */
  readonly reweighed: boolean;
  /** Has to be called, however the call ended. */
  end(result: Pick<TurnEnded, "contextTokens" | "sampledTokens" | "load">, error?: unknown): void;
};

export type CallWanted = Pick<TurnWanted, "jobId" | "attempt" | "contextTokens" | "failedOn"> & {
  /** What the call before failed with, where this one is to try again. */
  failed: unknown;
};

/** Where rollouts get leave for their calls. */
export interface Turns {
  /** @throws ServiceError `engine_*` where there is none to be had; the abort reason of `signal` */
  enter(call: CallWanted, signal: AbortSignal): Promise<Lease>;
}

type Open = { granted(lease: Backend, version: string | null): void; denied(why: unknown): void };

/** A thread's end of the way to the `TurnDesk`. */
export class TurnGate implements Turns {
  readonly #send: (event: FromTurn) => void;
  readonly #waiting = new Map<number, Open>();
  readonly #running = new Map<number, { stop: AbortController; reweighed: boolean }>();
  #calls = 0;

  constructor(send: (event: FromTurn) => void) {
    this.#send = send;
  }

  receive(message: ToTurn): void {
    const { call } = message;
    const open = this.#waiting.get(call);
    const running = this.#running.get(call);
    if (message.type === "turn_stopped") running?.stop.abort();
    else if (message.type === "turn_denied") open?.denied(fromErrorBody(message.error));
    else if (message.type === "turn_granted") {
      // Whoever waited has gone, and gives back what came too late.
      if (!open) this.#end(message, NOTHING, GONE);
      open?.granted(message.backend, message.weightVersion);
    } else if (running) running.reweighed = true;
  }

  enter(wanted: CallWanted, signal: AbortSignal): Promise<Lease> {
    signal.throwIfAborted();
    const { jobId, attempt, contextTokens, failedOn, failed } = wanted;
    const call = this.#calls++;
    const key = { jobId, attempt, call };
    const error = failed === null ? null : toErrorBody(failed);
    this.#send({ type: "turn_wanted", ...key, contextTokens, failedOn, failed: error });
    return new Promise((resolve, reject) => {
      const over = () => {
        this.#waiting.delete(call);
        signal.removeEventListener("abort", onAbort);
      };
      const onAbort = () => {
        over();
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.set(call, {
        denied(why) {
          over();
          reject(why);
        },
        granted: (backend, weightVersion) => {
          over();
          const running = { stop: new AbortController(), reweighed: false };
          this.#running.set(call, running);
          resolve({
            ...{ backend, weightVersion, stopped: running.stop.signal },
            get reweighed() {
              return running.reweighed;
            },
            end: (result, why) => this.#end(key, result, why),
          });
        },
      });
    });
  }

  #end(
    { jobId, attempt, call }: CallKey,
    result: Pick<TurnEnded, "contextTokens" | "sampledTokens" | "load">,
    why?: unknown,
  ): void {
    this.#running.delete(call);
    const error = why === undefined ? null : toErrorBody(why);
    this.#send({ type: "turn_ended", jobId, attempt, call, ...result, error });
  }
}

const GONE = new ServiceError("cancelled", "the rollout ended before its turn came");
const NOTHING = { contextTokens: null, sampledTokens: 0, load: null };

import type { ErrorBody, ErrorCode } from "../errors.ts";
import type { Backend } from "./engine.ts";
import type { InBandLoad } from "./generate.ts";

/** A call of a model within a job's attempt; a retry of it is another one. */
export type CallKey = { jobId: string; attempt: number; call: number };

/** A rollout is about to call its model, and waits for an answer. */
export type TurnWanted = CallKey & {
  type: "turn_wanted";
  /** Units: tokens of the prompt; null where the engine makes it. */
  contextTokens: number | null;
  /** Why the call before came to nothing, where this one is to try again. */
  failed: ErrorBody | null;
  /** The backends where this call came to nothing, in order. */
  failedOn: string[];
};

/** The call is over, however it ended. */
export type TurnEnded = CallKey & {
  type: "turn_ended";
  /** Null where tokens came of it. */
  error: ErrorBody | null;
  /** What came of it, as far as the engine says. Units: tokens. */
  contextTokens: number | null;
  sampledTokens: number;
  /** The engine's own load, where the reply has it. */
  load: InBandLoad | null;
};

/** Leave to make the call, once. */
export type TurnGranted = CallKey & {
  type: "turn_granted";
  backend: Backend;
  /** The weights that were announced last; null before any were. */
  weightVersion: string | null;
};

export type TurnDenied = CallKey & { type: "turn_denied"; error: ErrorBody };

/** End the call now, keep what was sampled, and ask again. */
export type TurnStopped = CallKey & { type: "turn_stopped" };

/** The weights changed under the call, which goes on. */
export type TurnReweighed = CallKey & { type: "turn_reweighed" };

export type FromTurn = TurnWanted | TurnEnded;
export type ToTurn = TurnGranted | TurnDenied | TurnStopped | TurnReweighed;

/** Failures for which the engine, not the request, is to blame, before any token was taken. */
export const TRIED_AGAIN: ReadonlySet<ErrorCode> = new Set([
  "engine_unreachable",
  "engine_overloaded",
  "engine_bad_reply",
  "engine_timeout",
  "engine_changed",
]);

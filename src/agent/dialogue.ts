import type { Message } from "../inference/engine.ts";
import type { TokenSegment } from "../trajectory/record.ts";
import type { RecordedCall } from "../trajectory/recorder.ts";

/** A call that can't be carried out, and what the model is told about it. */
export type Malformed = { status: "malformed" | "truncated"; problem: string };

/** What a model said, and what that cost. */
export type ModelTurn = RecordedCall & {
  /** By the id of the call. */
  malformedCalls: ReadonlyMap<string, Malformed>;
};

/**
 * A conversation with one model: as messages, where the engine makes tokens of them, or as tokens, where we
 * do and keep what was sampled.
 */
export interface Dialogue {
  /** Including what the model said. */
  readonly messages: readonly Message[];
  /** Messages of the environment. */
  add(...messages: Message[]): void;
  /**
   * Asks for the model's next message, which becomes part of the conversation.
   *
   * @throws ServiceError `context_exhausted` where nothing more fits, `engine_*`, `token_invariant`; the
   * abort reason of `signal`.
   */
  next(turn: number, signal: AbortSignal): Promise<ModelTurn>;
  /** What the call that failed last had sampled until then; null where it had nothing. */
  readonly cutOff?: ModelTurn | null;
  /** The tokens so far; null where there are none to be had. */
  segments(): TokenSegment[] | null;
}

/** How the conversation becomes a prompt. */
export type ChatOptions = {
  /** Variables of the chat template. */
  template_kwargs?: Record<string, unknown> | undefined;
  /** By ids only: whether earlier turns stay as they were sampled where the template rewrites them. */
  history?: "template" | "keep" | undefined;
};

/** What both kinds of dialogue need for a call. */
export type CallOptions = {
  jobId: string;
  callTimeoutMs: number;
  /** The longest silence within a reply, which is then streamed; without it, or 0, it is not. */
  stallMs?: number;
  maxReplyBytes: number;
};

/** The parts of a request that are the same for both kinds. */
export function callFields({ jobId, callTimeoutMs, maxReplyBytes }: CallOptions, turn: number) {
  const requestId = `${jobId}.${turn}`;
  return { timeoutMs: callTimeoutMs, maxReplyBytes, sessionId: jobId, requestId };
}

import { ServiceError } from "../errors.ts";
import type { AssistantMessage, Message } from "../inference/engine.ts";
import type { DialectName } from "../inference/tokens/dialects/dialect.ts";
import type { TokenSegment, Turn } from "../trajectory/record.ts";
import type { RecordedCall } from "../trajectory/recorder.ts";

/** A call that can't be carried out, and what the model is told about it. */
export type Malformed = { status: "malformed" | "truncated"; problem: string };

/** What a model said, and what that cost. */
export type ModelTurn = RecordedCall & {
  /** By the id of the call. */
  malformedCalls: ReadonlyMap<string, Malformed>;
};

/** A turn as it was recorded. */
export type Told = {
  turn: Turn;
  message: AssistantMessage;
  /**
   * What was sampled, and of the prompt before it the ids; null where the record has none. Shapes: `logprobs` has one
   * entry for each of `ids`, or is null.
   */
  sampled: { promptIds: number[]; ids: number[]; logprobs: number[] | null } | null;
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
  /**
   * Takes a turn as it was recorded instead of asking for it.
   *
   * @throws ServiceError `replay_diverged` where it can't have followed what was said so far
   */
  recall(told: Told, signal: AbortSignal): Promise<ModelTurn>;
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
  /** By ids only: how the model writes tool calls, where its template does not show it. */
  dialect?: DialectName | undefined;
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

/** A recorded turn as its model gave it. In text mode nobody knows more of a call that could not be carried out. */
export function modelTurnOf({ turn, message }: Told): ModelTurn {
  return {
    message,
    finishReason: turn.finish_reason,
    promptTokens: turn.prompt_tokens,
    completionTokens: turn.completion_tokens,
    cachedTokens: turn.cached_tokens,
    weightVersion: turn.weight_version,
    weightSpans: turn.weight_spans,
    logprobsMode: turn.logprobs_mode ?? null,
    lostTokens: turn.lost_tokens,
    backendId: turn.backend_id,
    waitedMs: turn.waited_ms,
    durationMs: turn.engine_ms,
    queueMs: turn.queue_ms,
    firstTokenMs: turn.first_token_ms,
    malformedCalls: new Map(),
  };
}

export function diverged(what: string): ServiceError {
  return new ServiceError("replay_diverged", `a paused rollout can't be gone on with: ${what}`);
}

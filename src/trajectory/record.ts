import type { FinishReason, Message, ToolSchema } from "../inference/engine.ts";
import type { WeightSpan } from "../inference/generate.ts";
import type { LogprobsMode } from "../inference/logprobs-mode.ts";

/** Why the agent stopped. A stop is an outcome to be scored; a failure is an error instead. */
export type StopReason =
  | "finish"
  | "answer"
  | "max_turns"
  | "loop"
  | "context"
  | "length"
  | "token_budget"
  | "done";

/** A file that RUN took from the agent's sandbox. `path` is relative to what the kind names. */
export type OutcomeFile = { path: string; base64: string; mode?: number };

/**
 * What RUN leaves for EVAL and for the result; stored as JSON, and bounded as a whole by `max_outcome_bytes`.
 * The policy has written it: EVAL trusts none of it.
 */
export type Outcome = {
  stop_reason: StopReason;
  final_message: string | null;
  turns: number;
  patch?: string;
  files?: OutcomeFile[];
  /** What was left out or looked suspicious, for people. */
  flags?: string[];
  /** A kind's own state, such as the session of a server that verifies. */
  state?: unknown;
};

/** One call of a model and what the environment answered. */
export type Turn = {
  /** Index in `messages` of what the model wrote; everything before it was its prompt. */
  message: number;
  backend_id: string;
  finish_reason: FinishReason;
  /** As the engine counted them; null where it does not say. */
  prompt_tokens: number | null;
  completion_tokens: number | null;
  /** Units: milliseconds. From the job's RUN start to the call, the call, and the tools it asked for. */
  started_ms: number;
  engine_ms: number;
  /** In the engine before it began; null where the engine does not say. */
  queue_ms: number | null;
  /** From the call to its first token; null where the reply was not streamed. */
  first_token_ms: number | null;
  /** Null where the engine does not say. */
  cached_tokens: number | null;
  /** Of the turn's last token. */
  weight_version: string | null;
  /** Which of the turn's sampled ids are of which version; empty where nobody knows. */
  weight_spans: WeightSpan[];
  /**
   * Of which distribution the log-probabilities of its ids are; null where there are none, or its engine did not show
   * it when it was probed.
   */
  logprobs_mode: LogprobsMode | null;
  /** For leave to call, which is not in `engine_ms`: weights change, or its backend has enough to do. */
  waited_ms: number;
  /**
   * Sampled and thrown away: answers by text that were broken off, and asked for anew. At least so many, as engines that are
   * not streamed do not say; 0 by ids, where a turn goes on from what it has.
   */
  lost_tokens: number;
  tools: ToolRun[];
};

/**
 * How a tool call ended. One that is malformed, truncated or of an unknown tool was not carried out; one that is
 * unfinished ran when the rollout was ended.
 */
export type ToolStatus =
  | "ok"
  | "malformed"
  | "truncated"
  | "unknown_tool"
  | "tool_error"
  | "timeout"
  | "unfinished";

export type ToolRun = {
  name: string;
  status: ToolStatus;
  /** Index in `messages` of the observation; null for a call that nothing answers. */
  message: number | null;
  duration_ms: number;
};

/**
 * One token sequence as an engine saw it. A rewritten history begins another segment.
 *
 * Shapes: `spans` cover `ids` without gaps, in order. `logprobs` has one entry for each id of a `sampled`
 * span, in order; null where the engine gave none. Units: `start` and `end` are indices of `ids`.
 */
export type TokenSegment = {
  ids: number[];
  spans: {
    kind: "prompt" | "sampled" | "observation";
    start: number;
    end: number;
    /** 1 exactly where the ids were sampled. */
    mask: 0 | 1;
    /** Index in `turns` of the call that sampled them; for sampled ids only. */
    turn?: number;
    /** Sampled last and left out, because the template ends the turn with another token. */
    dropped?: number;
  }[];
  logprobs: number[] | null;
  /** Why it is not the continuation of the segment before. */
  fork: { from: number; common: number; reason: string; detail: string } | null;
};

/**
 * What happened in RUN, in the order the engine saw it; linear in its size. `token_ids` says whether the
 * engine's ids are there, so that no trainer mistakes text for more: `refused` where a rollout that failed had some
 * that do not hold together.
 */
export type Trajectory = {
  version: 1;
  job_id: string;
  attempt: number;
  token_ids: "exact" | "absent" | "refused";
  /** Empty where the ids are not exact. */
  segments: TokenSegment[];
  tools: ToolSchema[];
  messages: Message[];
  turns: Turn[];
  /** Null when RUN did not come to an end of its own. */
  stop_reason: StopReason | null;
};

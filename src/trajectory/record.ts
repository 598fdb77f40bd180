import type { FinishReason, Message, ToolSchema } from "../inference/engine.ts";

/** Why the agent stopped. A stop is an outcome to be scored; a failure is an error instead. */
export type StopReason = "finish" | "answer" | "max_turns" | "loop" | "context" | "length" | "done";

/** What RUN leaves for EVAL and for the result; stored as JSON. */
export type Outcome = { stop_reason: StopReason; final_message: string | null; turns: number };

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
  tools: ToolRun[];
};

export type ToolRun = {
  name: string;
  /** Index in `messages` of the observation. */
  message: number;
  duration_ms: number;
  /** False when the call was malformed, the tool failed, or its time was over. */
  ok: boolean;
};

/**
 * What happened in RUN, in the order the engine saw it; linear in its size. This version is text mode only:
 * `token_ids` says that the engine's ids are absent, so that no trainer mistakes it for more.
 */
export type Trajectory = {
  version: 1;
  job_id: string;
  attempt: number;
  token_ids: "absent";
  tools: ToolSchema[];
  messages: Message[];
  turns: Turn[];
  /** Null when RUN did not come to an end of its own. */
  stop_reason: StopReason | null;
};

import type { ChatReply, Message, ToolSchema } from "../inference/engine.ts";
import type { StopReason, ToolRun, Trajectory, Turn } from "./record.ts";

/**
 * Builds a trajectory from the model calls as they happen. It takes calls and messages, not "our loop's
 * turns", so that any agent can feed it. What was recorded so far can be read at any moment.
 */
export class Recorder {
  readonly #trajectory: Trajectory;
  readonly #startMs = performance.now();

  constructor(jobId: string, attempt: number) {
    this.#trajectory = {
      version: 1,
      job_id: jobId,
      attempt,
      token_ids: "absent",
      tools: [],
      messages: [],
      turns: [],
      stop_reason: null,
    };
  }

  get messages(): readonly Message[] {
    return this.#trajectory.messages;
  }

  begin(messages: Message[], tools: ToolSchema[]): void {
    this.#trajectory.tools = tools;
    this.#trajectory.messages.push(...messages);
  }

  /** The model's message becomes part of the conversation. */
  call(backendId: string, reply: ChatReply): void {
    const turn: Turn = {
      message: this.#trajectory.messages.push(reply.message) - 1,
      backend_id: backendId,
      finish_reason: reply.finishReason,
      prompt_tokens: reply.promptTokens,
      completion_tokens: reply.completionTokens,
      started_ms: Math.round(performance.now() - this.#startMs - reply.durationMs),
      engine_ms: reply.durationMs,
      tools: [],
    };
    this.#trajectory.turns.push(turn);
  }

  /** An answer of the environment that belongs to a tool call of the last turn. */
  observe(message: Extract<Message, { role: "tool" }>, run: Omit<ToolRun, "message">): void {
    const index = this.#trajectory.messages.push(message) - 1;
    this.#trajectory.turns.at(-1)?.tools.push({ ...run, message: index });
  }

  /** A message of the environment that no tool call asked for. */
  say(message: Message): void {
    this.#trajectory.messages.push(message);
  }

  stop(reason: StopReason): void {
    this.#trajectory.stop_reason = reason;
  }

  get turns(): number {
    return this.#trajectory.turns.length;
  }

  /** True once there is anything worth returning. */
  get hasContent(): boolean {
    return this.#trajectory.messages.length > 0;
  }

  toJson(): string {
    return JSON.stringify(this.#trajectory);
  }
}

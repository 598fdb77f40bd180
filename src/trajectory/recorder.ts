import { ServiceError } from "../errors.ts";
import type {
  AssistantMessage,
  FinishReason,
  Message,
  ToolCall,
  ToolSchema,
} from "../inference/engine.ts";
import type { WeightSpan } from "../inference/generate.ts";
import type { LogprobsMode } from "../inference/logprobs-mode.ts";
import type { StopReason, TokenSegment, ToolRun, Trajectory, Turn } from "./record.ts";
import { tokenProblem } from "./validate.ts";

/** One call of a model, as its recorder needs to know it. */
export type RecordedCall = {
  message: AssistantMessage;
  finishReason: FinishReason;
  /** As the engine counted them; null where it does not say. */
  promptTokens: number | null;
  completionTokens: number | null;
  cachedTokens: number | null;
  weightVersion: string | null;
  /** Of which distribution its log-probabilities are; null where there are none, or nobody knows. */
  logprobsMode: LogprobsMode | null;
  weightSpans: WeightSpan[];
  /** Where it came from, where that was not the caller's choice. */
  backendId?: string | undefined;
  /** For leave to call. Units: milliseconds. */
  waitedMs?: number | undefined;
  durationMs: number;
  /** Null where the engine does not say. */
  queueMs: number | null;
  /** Null where the reply was not streamed. */
  firstTokenMs: number | null;
  /** In answers that were broken off and asked for anew. */
  lostTokens?: number | undefined;
};

/** What a rollout does at a moment. Units: `forMs` is in milliseconds. */
export type Doing =
  | { what: "tool"; turn: number; name: string; arguments: string; forMs: number }
  | { what: "model"; turn: number; forMs: number };

/** What is kept of a running call's arguments. Units: characters. */
const MAX_ARGUMENTS = 500;

/**
 * Builds a trajectory from the model calls as they happen. It takes calls and messages, not "our loop's
 * turns", so that any agent can feed it. What was recorded so far can be read at any moment.
 */
export class Recorder {
  readonly #trajectory: Omit<Trajectory, "token_ids" | "segments">;
  #segments: () => TokenSegment[] | null = () => null;
  readonly #now: () => number;
  readonly #startMs: number;
  #open: ({ atMs: number } & ({ what: "model" } | { what: "tool"; call: ToolCall })) | null = null;

  /** @param now in milliseconds, from wherever it counts */
  constructor(jobId: string, attempt: number, now = () => performance.now()) {
    this.#now = now;
    this.#startMs = now();
    this.#trajectory = {
      version: 1,
      job_id: jobId,
      attempt,
      tools: [],
      messages: [],
      turns: [],
      stop_reason: null,
    };
  }

  /** @param segments gives the tokens so far, or null where there are none to be had */
  begin(
    messages: readonly Message[],
    tools: ToolSchema[],
    segments: () => TokenSegment[] | null,
  ): void {
    this.#trajectory.tools = tools;
    this.#trajectory.messages.push(...messages);
    this.#segments = segments;
  }

  /** The model is called; until its message or the next call. */
  calling(): void {
    this.#open = { what: "model", atMs: this.#now() };
  }

  /** A tool call of the last turn is carried out; until it is observed. */
  carryOut(call: ToolCall): void {
    this.#open = { what: "tool", call, atMs: this.#now() };
  }

  /** The model call or tool call that is not over yet. */
  get doing(): Doing | null {
    const open = this.#open;
    if (open === null) return null;
    const { turns } = this.#trajectory;
    const forMs = Math.round(this.#now() - open.atMs);
    if (open.what === "model") return { what: "model", turn: turns.length, forMs };
    const { name, arguments: text } = open.call.function;
    const excerpt = text.slice(0, MAX_ARGUMENTS).toWellFormed();
    return { what: "tool", turn: turns.length - 1, name, arguments: excerpt, forMs };
  }

  /** The model's message becomes part of the conversation. */
  call(backendId: string, reply: RecordedCall): void {
    this.#open = null;
    const turn: Turn = {
      message: this.#trajectory.messages.push(reply.message) - 1,
      backend_id: backendId,
      finish_reason: reply.finishReason,
      prompt_tokens: reply.promptTokens,
      completion_tokens: reply.completionTokens,
      // A turn that is told from an earlier record took place before.
      started_ms: Math.max(0, Math.round(this.#now() - this.#startMs - reply.durationMs)),
      engine_ms: reply.durationMs,
      queue_ms: reply.queueMs,
      first_token_ms: reply.firstTokenMs,
      cached_tokens: reply.cachedTokens,
      weight_version: reply.weightVersion,
      weight_spans: reply.weightSpans,
      logprobs_mode: reply.logprobsMode,
      waited_ms: Math.round(reply.waitedMs ?? 0),
      lost_tokens: reply.lostTokens ?? 0,
      tools: [],
    };
    this.#trajectory.turns.push(turn);
  }

  /** How a tool call of the last turn ended, and what it was answered; null where nothing was. */
  observe(message: Extract<Message, { role: "tool" }> | null, run: Omit<ToolRun, "message">): void {
    this.#open = null;
    const index = message === null ? null : this.#trajectory.messages.push(message) - 1;
    this.#trajectory.turns.at(-1)?.tools.push({ ...run, message: index });
  }

  /** A message of the environment that no tool call asked for. */
  say(message: Message): void {
    this.#trajectory.messages.push(message);
  }

  stop(reason: StopReason): void {
    this.#trajectory.stop_reason = reason;
  }

  get messages(): readonly Message[] {
    return this.#trajectory.messages;
  }

  get turns(): number {
    return this.#trajectory.turns.length;
  }

  /** What the model wrote so far; null where its engine does not count. */
  get sampledTokens(): number | null {
    const counts = this.#trajectory.turns.map(({ completion_tokens: tokens }) => tokens);
    if (counts.length === 0 || counts.includes(null)) return null;
    return counts.reduce<number>((sum, tokens) => sum + (tokens ?? 0), 0);
  }

  /** True once there is anything worth returning. */
  get hasContent(): boolean {
    return this.#trajectory.messages.length > 0;
  }

  /** When and how each call of the model and each tool went; null where there was none. */
  turnsJson(): string | null {
    const turns = this.#turnsSoFar();
    return turns.length === 0 ? null : JSON.stringify(turns);
  }

  /** All of it, at its end. @throws ServiceError `token_invariant` where a trainer could not rely on the tokens. */
  finished(): string {
    const { json, problem } = this.#read();
    if (problem !== null) throw new ServiceError("token_invariant", problem);
    return json;
  }

  /** What is there so far, with ids only where a trainer may rely on them. */
  toJson(): string {
    return this.#read().json;
  }

  #read(): { json: string; problem: string | null } {
    const segments = this.#segments();
    if (segments === null) return { json: this.#json("absent", []), problem: null };
    const problem = tokenProblem(segments, this.#trajectory.turns);
    const json = problem === null ? this.#json("exact", segments) : this.#json("refused", []);
    return { json, problem };
  }

  #json(token_ids: Trajectory["token_ids"], segments: TokenSegment[]): string {
    const turns = this.#turnsSoFar();
    return JSON.stringify({ ...this.#trajectory, turns, token_ids, segments });
  }

  /** With the tool call that runs now. */
  #turnsSoFar(): Turn[] {
    const { turns } = this.#trajectory;
    const last = turns.at(-1);
    const { doing } = this;
    if (doing?.what !== "tool" || !last) return turns;
    const { name, forMs } = doing;
    const running: ToolRun = { name, status: "unfinished", message: null, duration_ms: forMs };
    return [...turns.slice(0, -1), { ...last, tools: [...last.tools, running] }];
  }
}

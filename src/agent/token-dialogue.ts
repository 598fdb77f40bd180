import { ServiceError } from "../errors.ts";
import type { Backend, Message, Sampling, ToolSchema } from "../inference/engine.ts";
import type { GenerateReply, TokenEngine } from "../inference/generate.ts";
import { Conversation } from "../inference/tokens/conversation.ts";
import type { CallStatus } from "../inference/tokens/dialects/dialect.ts";
import { MarkedText } from "../inference/tokens/dialects/marked-text.ts";
import { parseReply, replyMessage, startsInReasoning } from "../inference/tokens/dialects/reply.ts";
import { numbersOf } from "../inference/tokens/token-buffer.ts";
import type { TokenModel } from "../inference/tokens/token-model.ts";
import type { TokenSegment } from "../trajectory/record.ts";
import {
  type CallOptions,
  type ChatOptions,
  callFields,
  type Dialogue,
  diverged,
  type Malformed,
  type ModelTurn,
  modelTurnOf,
  type Told,
} from "./dialogue.ts";
import { tokenSegments } from "./token-segments.ts";

type TokenOptions = CallOptions &
  ChatOptions & {
    engine: TokenEngine;
    backend: Backend;
    model: TokenModel;
    sampling: Sampling;
    tools: ToolSchema[];
  };

/** What is wrong with a call, as the model is told. */
const PROBLEMS: Record<Exclude<CallStatus, "ok" | "unknown_tool">, string> = {
  invalid_json: "the tool call is not valid JSON",
  unclosed: "the tool call has no end",
  missing_name: "the tool call names no tool",
  malformed: "the tool call is not in the form that it must have",
};

/** How long the text of what an ended call had sampled may take, where the engine has to make it. */
const LATE_MS = 2_000;

/** How much of a prompt's end tells whether the model begins within its reasoning. Units: tokens. */
const PROMPT_END = 64;

/** Tokens in, tokens out: what was sampled is kept as it was sampled, and only new messages are tokenised. */
export class TokenDialogue implements Dialogue {
  readonly #options: TokenOptions;
  readonly #conversation: Conversation;
  readonly #stopTokenIds: number[];
  /** The log-probabilities of each completion, by its turn. */
  readonly #logprobs: (number[] | null)[] = [];
  #calls = 0;
  cutOff: ModelTurn | null = null;

  /** @throws ServiceError `template_refused`, and `engine_*` where the engine renders */
  static open(prompt: Message[], options: TokenOptions, signal: AbortSignal) {
    return options.model.settle(() => new TokenDialogue(prompt, options), signal);
  }

  private constructor(prompt: Message[], options: TokenOptions) {
    this.#options = options;
    const { model, tools, template_kwargs: variables, history } = options;
    const { unreadCall } = model;
    if (unreadCall !== null && tools.length > 0 && options.dialect === undefined) {
      const message = `no dialect reads the tool calls that the chat template shows, ${unreadCall}`;
      const mend = "name the one in which the model writes its calls as chat.dialect";
      throw new ServiceError("template_refused", message, { mend });
    }
    this.#conversation = new Conversation(model, prompt, {
      tools,
      ...(variables && { variables }),
      ...(history && { history }),
    });
    this.#stopTokenIds = [...options.model.stopIds];
  }

  get messages(): readonly Message[] {
    return this.#conversation.messages;
  }

  add(...messages: Message[]): void {
    this.#conversation.add(...messages);
  }

  async next(turn: number, signal: AbortSignal): Promise<ModelTurn> {
    const { engine, backend, sampling, stallMs = 0 } = this.#options;
    const { model } = this.#options;
    const promptIds = await model.settle(() => numbersOf(this.#conversation.prompt()), signal);
    let partial: GenerateReply | null = null;
    const request = {
      promptIds,
      sampling,
      stopTokenIds: this.#stopTokenIds,
      stallMs,
      onPartial: (sampled: GenerateReply) => {
        partial = sampled;
      },
      ...callFields(this.#options, turn),
    };
    try {
      const reply = await engine.generate(backend, request, signal);
      return await model.settle(() => this.#take(reply, promptIds), signal);
    } catch (error) {
      const kept = partial as GenerateReply | null;
      const late = AbortSignal.timeout(LATE_MS);
      const taking = kept && model.settle(() => this.#take(kept, promptIds), late);
      // Why the call ended matters more than a part that can't be read any more.
      this.cutOff = (await taking?.catch(() => null)) ?? null;
      throw error;
    }
  }

  async recall(told: Told, signal: AbortSignal): Promise<ModelTurn> {
    const { model } = this.#options;
    const promptIds = await model.settle(() => numbersOf(this.#conversation.prompt()), signal);
    const { sampled } = told;
    if (!sampled || !Bun.deepEquals(promptIds, sampled.promptIds)) {
      throw diverged("its prompt has other tokens now");
    }
    const turn = modelTurnOf(told);
    const { ids, logprobs } = sampled;
    const read = await model.settle(() => this.#read(ids, logprobs, promptIds), signal);
    return { ...turn, ...read };
  }

  segments(): TokenSegment[] {
    return tokenSegments(this.#conversation.segments, this.#logprobs);
  }

  /** What was sampled becomes part of the conversation. */
  #read(ids: number[], logprobs: number[] | null, promptIds: readonly number[]) {
    const { tokenizer, stopIds } = this.#options.model;
    const dialect = this.#options.dialect ?? this.#options.model.dialect;
    const promptEnd = tokenizer.decode(promptIds.slice(-PROMPT_END));
    const source = MarkedText.ofIds(tokenizer, ids, stopIds);
    const parsed = parseReply(source, {
      dialect,
      tools: this.#options.tools,
      startsInReasoning: startsInReasoning(promptEnd),
      markers: this.#options.model.callMarkers,
    });
    const message = replyMessage(parsed, dialect, this.#calls);
    this.#calls += parsed.calls.length;
    this.#logprobs.push(logprobs);
    this.#conversation.sampled(ids, message);
    const malformedCalls = new Map<string, Malformed>();
    for (const [index, { status }] of parsed.calls.entries()) {
      const id = message.tool_calls?.[index]?.id;
      if (!id || status === "ok" || status === "unknown_tool") continue;
      const cut = status === "unclosed" ? "truncated" : "malformed";
      malformedCalls.set(id, { status: cut, problem: PROBLEMS[status] });
    }
    return { message, malformedCalls };
  }

  #take(reply: GenerateReply, promptIds: readonly number[]): ModelTurn {
    const read = this.#read(reply.tokenIds, reply.logprobs, promptIds);
    const called = read.message.tool_calls !== undefined && reply.finishReason === "stop";
    return {
      ...read,
      finishReason: called ? "tool_calls" : reply.finishReason,
      promptTokens: promptIds.length,
      completionTokens: reply.tokenIds.length,
      cachedTokens: reply.cachedTokens,
      weightVersion: reply.weightVersion,
      weightSpans: reply.weightSpans,
      logprobsMode: reply.logprobsMode,
      backendId: reply.backendId,
      waitedMs: reply.waitedMs,
      durationMs: reply.times.totalMs,
      queueMs: reply.times.queueMs,
      firstTokenMs: reply.times.firstTokenMs,
    };
  }
}

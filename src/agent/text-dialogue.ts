import type {
  Backend,
  ChatReply,
  EngineClient,
  Message,
  Sampling,
  ToolSchema,
} from "../inference/engine.ts";
import {
  type CallOptions,
  type ChatOptions,
  callFields,
  type Dialogue,
  type ModelTurn,
  modelTurnOf,
  type Told,
} from "./dialogue.ts";

type TextOptions = CallOptions &
  Pick<ChatOptions, "template_kwargs"> & {
    engine: EngineClient;
    backend: Backend;
    sampling: Sampling;
    tools: ToolSchema[];
  };

/** Messages in, messages out: what the model saw as tokens is the engine's own business. */
export class TextDialogue implements Dialogue {
  readonly messages: Message[];
  readonly #options: TextOptions;
  cutOff: ModelTurn | null = null;

  constructor(prompt: Message[], options: TextOptions) {
    this.messages = [...prompt];
    this.#options = options;
  }

  add(...messages: Message[]): void {
    this.messages.push(...messages);
  }

  async next(turn: number, signal: AbortSignal): Promise<ModelTurn> {
    const { engine, backend, tools, sampling, template_kwargs, stallMs = 0 } = this.#options;
    const fields = callFields(this.#options, turn);
    const request = {
      messages: [...this.messages],
      ...{ tools, sampling, stallMs },
      ...(template_kwargs && { templateKwargs: template_kwargs }),
      ...fields,
      onPartial: (partial: ChatReply) => {
        this.cutOff = this.#take(partial);
      },
    };
    return this.#take(await engine.chat(backend, request, signal));
  }

  #take(reply: ChatReply): ModelTurn {
    this.messages.push(reply.message);
    const { message, finishReason, promptTokens, completionTokens, durationMs } = reply;
    return {
      ...{ message, finishReason, promptTokens, completionTokens, durationMs },
      cachedTokens: reply.cachedTokens ?? null,
      weightVersion: reply.weightVersion ?? null,
      weightSpans: [],
      logprobsMode: null,
      backendId: reply.backendId,
      waitedMs: reply.waitedMs,
      queueMs: null,
      firstTokenMs: reply.firstTokenMs ?? null,
      lostTokens: reply.lostTokens ?? 0,
      malformedCalls: new Map(),
    };
  }

  async recall(told: Told): Promise<ModelTurn> {
    this.messages.push(told.message);
    return modelTurnOf(told);
  }

  segments(): null {
    return null;
  }
}

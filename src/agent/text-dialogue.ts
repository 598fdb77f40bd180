import type {
  Backend,
  ChatReply,
  EngineClient,
  Message,
  Sampling,
  ToolSchema,
} from "../inference/engine.ts";
import type { TokenSegment } from "../trajectory/record.ts";
import {
  type CallOptions,
  type ChatOptions,
  callFields,
  type Dialogue,
  type ModelTurn,
  modelTurnOf,
  type Told,
} from "./dialogue.ts";
import { SeenTokens } from "./seen-tokens.ts";

type TextOptions = CallOptions &
  Pick<ChatOptions, "template_kwargs"> & {
    engine: EngineClient;
    backend: Backend;
    sampling: Sampling;
    tools: ToolSchema[];
    /** Whether ids are kept where the engine tells them. */
    keepIds?: boolean;
  };

/** Messages in, messages out: the tokens are the engine's own business, and are kept where it tells them with each answer. */
export class TextDialogue implements Dialogue {
  readonly messages: Message[];
  readonly #options: TextOptions;
  cutOff: ModelTurn | null = null;
  /** Null as soon as those of one call are missing. */
  #seen: SeenTokens | null;

  constructor(prompt: Message[], options: TextOptions) {
    this.messages = [...prompt];
    this.#options = options;
    this.#seen = options.keepIds === false ? null : new SeenTokens();
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
        // The ids of the turns before are worth more than the text of a part without any.
        if (!partial.tokens && this.#seen?.turns) return;
        this.cutOff = this.#take(partial);
      },
    };
    return this.#take(await engine.chat(backend, request, signal));
  }

  #take(reply: ChatReply): ModelTurn {
    this.messages.push(reply.message);
    const { message, finishReason, durationMs, tokens } = reply;
    if (tokens) this.#seen?.add({ ...tokens, ids: tokens.tokenIds });
    else this.#seen = null;
    const hasLogprobs = Boolean(tokens?.logprobs);
    return {
      ...{ message, finishReason, durationMs },
      promptTokens: tokens?.promptIds.length ?? reply.promptTokens,
      completionTokens: tokens?.tokenIds.length ?? reply.completionTokens,
      cachedTokens: reply.cachedTokens ?? null,
      weightVersion: reply.weightVersion ?? null,
      weightSpans: reply.weightSpans ?? [],
      logprobsMode: (hasLogprobs && this.#options.backend.profile?.logprobs_mode) || null,
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
    if (told.sampled) this.#seen?.add(told.sampled);
    else this.#seen = null;
    return modelTurnOf(told);
  }

  segments(): TokenSegment[] | null {
    return this.#seen?.turns ? this.#seen.segments() : null;
  }
}

import assert from "node:assert";
import { ServiceError } from "../../errors.ts";
import type { AssistantMessage, Message, ToolSchema } from "../engine.ts";
import { commonPrefix, firstDifference } from "./common-prefix.ts";
import { type ForkReason, Segment } from "./segment.ts";
import { contextOf, type Rendering, render, spliceAfter } from "./splice.ts";
import type { NewRole, TemplateShape } from "./template-shape.ts";
import { stopsOf, type TokenModel } from "./token-model.ts";

export type ConversationOptions = {
  tools: ToolSchema[];
  /** Further variables of the template, such as `enable_thinking`. */
  variables?: Record<string, unknown>;
  /**
   * `template` forks where the template rewrites earlier turns, so that the model sees what it would
   * see when it is served. `keep` never does: earlier turns stay as they were sampled.
   */
  history?: "template" | "keep";
  /** `always` renders the whole history for each splice, to check the synthetic context against. */
  wholeContext?: "where needed" | "always";
  now?: Date;
};

/**
 * The ids of one conversation, as its engine sees them.
 *
 * `prompt` gives the ids of the next call, `sampled` takes what the engine answered, `add` what the
 * environment says to it. Ids that were given or taken never change: a rewritten history begins a
 * new segment.
 */
export class Conversation {
  readonly segments: Segment[] = [];
  readonly #model: TokenModel;
  readonly #options: Required<ConversationOptions>;
  #tools: ToolSchema[];
  #variables: Record<string, unknown>;
  #shape: TemplateShape;
  #messages: Message[];
  /** How many of the messages have ids. */
  #encoded = 0;
  /** How many messages the segment's first prompt has. */
  #opened = 0;
  /** The text of the segment's first prompt. */
  #opening = "";
  /** How many completions there are. */
  #turns = 0;

  /** @throws ServiceError `template_refused` */
  constructor(model: TokenModel, messages: readonly Message[], options: ConversationOptions) {
    this.#model = model;
    this.#options = {
      variables: {},
      history: "template",
      wholeContext: "where needed",
      now: new Date(),
      ...options,
    };
    this.#tools = options.tools;
    this.#variables = options.variables ?? {};
    this.#shape = model.shape(this.#tools, this.#variables);
    this.#messages = [...messages];
    this.#begin(null);
  }

  get messages(): readonly Message[] {
    return this.#messages;
  }

  /** Messages of the environment. They get ids together, in the next `prompt`. */
  add(...messages: Message[]): void {
    this.#messages.push(...messages);
  }

  /**
   * The whole prompt of the next call, to be read before anything is added.
   *
   * @throws ServiceError `template_refused`; `prefix_broken` when it does not extend what the engine
   * has seen, which is a bug.
   */
  prompt(): Int32Array {
    if (this.#encoded < this.#messages.length) this.#extend();
    const segment = this.#segment;
    if (segment.extendsSealed) return segment.ids;
    const message = "the next prompt does not extend the ids that the engine has seen";
    throw new ServiceError("prefix_broken", message);
  }

  /**
   * Takes a call's completion.
   *
   * `ids` are as the engine sampled them, with the token that ended the turn where it returns it;
   * `message` is what they say. Whatever the template needs to close the turn is added later with
   * mask 0, so that a turn that was cut off by `length` can go on.
   */
  sampled(ids: ArrayLike<number>, message: AssistantMessage): void {
    const segment = this.#segment;
    segment.append("sampled", ids, this.#turns++);
    segment.seal();
    this.#messages.push(message);
    this.#encoded = this.#messages.length;
  }

  /** Another history instead, as after compaction or an edit: forks. */
  replace(messages: readonly Message[], tools: ToolSchema[] = this.#tools): void {
    const sameTools = JSON.stringify(tools) === JSON.stringify(this.#tools);
    const reason: ForkReason = sameTools ? "messages_replaced" : "tools_changed";
    this.#tools = tools;
    this.#shape = this.#model.shape(tools, this.#variables);
    const before = this.#opening;
    this.#messages = [...messages];
    this.#begin({ reason, detail: (text) => firstDifference(before, text) });
  }

  get #segment(): Segment {
    return this.segments.at(-1) as Segment;
  }

  /** What may end a turn, as the template writes it: the same behind a text as behind a call, or not (gpt-oss). */
  get #ends(): string[] {
    const { endOfTurn } = this.#shape;
    return [...(endOfTurn === null ? [] : [endOfTurn]), ...stopsOf(this.#model)];
  }

  get #rendering(): Rendering {
    const { template } = this.#model;
    const { form } = this.#shape;
    const { now } = this.#options;
    return { template, form, tools: this.#tools, variables: this.#variables, now };
  }

  /** Begins a segment with the whole history; what it shares with the last one keeps its ids. */
  #begin(fork: { reason: ForkReason; detail(text: string): string } | null): void {
    const text = render(this.#rendering, this.#messages, true);
    const last = this.segments.at(-1);
    const { tokenizer } = this.#model;
    let segment: Segment;
    if (last && fork) {
      const common = commonPrefix(tokenizer, last.ids, text);
      const { reason, detail } = fork;
      const record = { from: last.index, common: common.ids, reason, detail: detail(text) };
      segment = new Segment(this.segments.length, record);
      const rest = tokenizer.encode(text.slice(common.text));
      segment.append("prompt", [...last.ids.subarray(0, common.ids), ...rest]);
    } else {
      segment = new Segment(0, null);
      segment.append("prompt", tokenizer.encode(text));
    }
    this.segments.push(segment);
    this.#opening = text;
    this.#opened = this.#messages.length;
    this.#encoded = this.#messages.length;
  }

  #extend(): void {
    const before = this.#messages.slice(0, this.#encoded);
    const added = this.#messages.slice(this.#encoded);
    const assistant = before.pop();
    const spoke = this.#encoded > this.#opened && assistant?.role === "assistant";
    assert(spoke, "messages were added before the model spoke");
    const role: NewRole = added.every((message) => message.role === "tool") ? "tool" : "user";
    const detail = this.#rewritten(role);
    if (detail !== null) {
      this.#begin({ reason: "template_rewrote_history", detail: () => detail });
      return;
    }
    const { tokenizer } = this.#model;
    const { close, next } = this.#splice(role, before, assistant, added);
    const at = this.#ends.reduce((last, end) => Math.max(last, close.lastIndexOf(end)), -1);
    // What must follow the model's words: the end of its turn, or the opener of the next.
    const closing = at < 0 ? next : close.slice(at) + next;
    this.#close(tokenizer.encode(closing));
    this.#encoded = this.#messages.length;
  }

  /** Appends the ids that follow the model's words, of which the engine may have sampled the first. */
  #close(closing: number[]): void {
    const segment = this.#segment;
    const sampled = segment.spans.at(-1)?.kind === "sampled" ? segment.ids.at(-1) : undefined;
    const token = sampled === undefined ? undefined : this.#model.tokenizer.addedContent(sampled);
    if (token !== undefined && sampled === closing[0]) {
      segment.append("observation", closing.slice(1));
      return;
    }
    // Where the template forgets to end a turn, as DeepSeek-V3's does after one call, its end stays.
    const isOwnEnd = token === this.#shape.endOfTurn;
    if (sampled !== undefined && this.#model.stopIds.has(sampled) && !isOwnEnd) segment.dropLast();
    segment.append("observation", closing);
  }

  #splice(role: NewRole, before: Message[], assistant: AssistantMessage, added: Message[]) {
    const shape = this.#shape;
    const context = this.#options.wholeContext === "always" ? "whole" : shape.context[role];
    const rendering = this.#rendering;
    const splice = spliceAfter(rendering, contextOf(before, context), assistant, added);
    const found = splice ?? spliceAfter(rendering, before, assistant, added);
    if (found) return found;
    const message = "the chat template shows the end of a turn differently once another follows";
    throw new ServiceError("template_refused", message, { mend: REPORT_TEMPLATE });
  }

  /** What the template rewrites of the history now; null where it keeps it. */
  #rewritten(role: NewRole): string | null {
    const shape = this.#shape;
    if (this.#options.history === "keep") return null;
    const history = this.#messages.slice(0, this.#encoded);
    if (shape.thinkingCut.has(role) && history.slice(this.#opened).some(hasReasoning)) {
      return `the template drops earlier reasoning once a ${role} message follows`;
    }
    if (!shape.rewriting.has(role)) return null;
    const closed = render(this.#rendering, history, false);
    const open = render(this.#rendering, this.#messages, true);
    if (!open.startsWith(closed)) return firstDifference(closed, open);
    return open.startsWith(this.#opening) ? null : firstDifference(this.#opening, open);
  }
}

const REPORT_TEMPLATE =
  "run `rolloutd verify-template` on the model folder and report what it prints";

function hasReasoning(message: Message): boolean {
  return message.role === "assistant" && Boolean(message.reasoning_content);
}

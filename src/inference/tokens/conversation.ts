import assert from "node:assert";
import { ServiceError } from "../../errors.ts";
import type { AssistantMessage, Message, ToolSchema } from "../engine.ts";
import { commonPrefix, firstDifference } from "./common-prefix.ts";
import { appendSpan, type ForkReason, type Segment } from "./segment.ts";
import { type Rendering, render, spliceAfter } from "./splice.ts";
import type { NewRole, TemplateShape } from "./template-shape.ts";
import type { TokenModel } from "./token-model.ts";

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
  /** What the engine has seen: the ids of the last prompt and its completion. */
  #seen = new Int32Array(0);

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
  prompt(): readonly number[] {
    if (this.#encoded < this.#messages.length) this.#extend();
    const { ids } = this.#segment;
    this.#assertExtends(ids);
    return ids;
  }

  /**
   * Takes a call's completion.
   *
   * `ids` are as the engine sampled them, with the token that ended the turn where it returns it;
   * `message` is what they say. Whatever the template needs to close the turn is added later with
   * mask 0, so that a turn that was cut off by `length` can go on.
   */
  sampled(ids: readonly number[], message: AssistantMessage): void {
    appendSpan(this.#segment, "sampled", ids);
    this.#messages.push(message);
    this.#encoded = this.#messages.length;
    this.#seen = Int32Array.from(this.#segment.ids);
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
    const segment: Segment = { index: this.segments.length, ids: [], spans: [], fork: null };
    if (last && fork) {
      const common = commonPrefix(tokenizer, last.ids, text);
      const rest = tokenizer.encode(text.slice(common.text));
      appendSpan(segment, "prompt", last.ids.slice(0, common.ids).concat(rest));
      const { reason, detail } = fork;
      segment.fork = { from: last.index, common: common.ids, reason, detail: detail(text) };
    } else appendSpan(segment, "prompt", tokenizer.encode(text));
    this.segments.push(segment);
    this.#opening = text;
    this.#opened = this.#messages.length;
    this.#encoded = this.#messages.length;
    this.#seen = Int32Array.from(segment.ids);
  }

  #extend(): void {
    const before = this.#messages.slice(0, this.#encoded);
    const added = this.#messages.slice(this.#encoded);
    const assistant = before.pop();
    assert(assistant?.role === "assistant", "messages were added before the model spoke");
    const role: NewRole = added.every((message) => message.role === "tool") ? "tool" : "user";
    const detail = this.#rewritten(role);
    if (detail !== null) {
      this.#begin({ reason: "template_rewrote_history", detail: () => detail });
      return;
    }
    const { tokenizer } = this.#model;
    const { close, next } = this.#splice(role, before, assistant, added);
    const { endOfTurn } = this.#shape;
    const at = endOfTurn === null ? -1 : close.lastIndexOf(endOfTurn);
    // What must follow the model's words: the end of its turn, or the opener of the next.
    const closing = at < 0 ? next : close.slice(at) + next;
    this.#close(tokenizer.encode(closing));
    this.#encoded = this.#messages.length;
  }

  /** Appends the ids that follow the model's words, of which the engine may have sampled the first. */
  #close(closing: number[]): void {
    const segment = this.#segment;
    const last = segment.ids.at(-1);
    const span = segment.spans.at(-1);
    if (span?.kind !== "sampled" || last === undefined) {
      appendSpan(segment, "observation", closing);
      return;
    }
    if (last === closing[0]) {
      appendSpan(segment, "observation", closing.slice(1));
      return;
    }
    // Where the template forgets to end a turn, as DeepSeek-V3's does after one call, its end stays.
    const ownEnd = this.#model.tokenizer.addedContent(last) === this.#shape.endOfTurn;
    if (this.#model.stopIds.has(last) && !ownEnd) this.#drop(segment, last);
    appendSpan(segment, "observation", closing);
  }

  /** The model ended its turn with another token than its template has there. */
  #drop(segment: Segment, id: number): void {
    const span = segment.spans.at(-1);
    assert(span?.kind === "sampled");
    segment.ids.pop();
    span.end -= 1;
    span.dropped = id;
    this.#seen = this.#seen.subarray(0, segment.ids.length);
  }

  #splice(role: NewRole, before: Message[], assistant: AssistantMessage, added: Message[]) {
    const shape = this.#shape;
    const whole = this.#options.wholeContext === "always" || shape.historyDependent.has(role);
    const rendering = this.#rendering;
    const splice = whole ? null : spliceAfter(rendering, headOf(before), assistant, added);
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

  #assertExtends(ids: readonly number[]): void {
    const seen = this.#seen;
    if (ids.length >= seen.length && seen.every((id, index) => id === ids[index])) return;
    const message = `the next prompt does not extend the ${seen.length} ids that the engine has seen`;
    throw new ServiceError("prefix_broken", message);
  }
}

const REPORT_TEMPLATE =
  "run `rolloutd verify-template` on the model folder and report what it prints";

/**
 * The synthetic context of a splice: the conversation's own beginning, so that it stays as large at
 * every turn, and a template that repeats the system message later repeats the right one.
 */
function headOf(messages: readonly Message[]): Message[] {
  const end = messages.findIndex(({ role }) => role === "assistant");
  const head = end < 0 ? messages : messages.slice(0, end);
  return head.slice(0, head.findIndex(({ role }) => role === "user") + 1 || head.length);
}

function hasReasoning(message: Message): boolean {
  return message.role === "assistant" && Boolean(message.reasoning_content);
}

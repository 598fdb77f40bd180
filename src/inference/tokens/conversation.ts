import assert from "node:assert";
import { ServiceError } from "../../errors.ts";
import type { AssistantMessage, Message, ToolSchema } from "../engine.ts";
import { commonPrefix, firstDifference } from "./common-prefix.ts";
import { type ForkReason, Segment } from "./segment.ts";
import { missingFrom } from "./shown-turn.ts";
import { type Rendering, render, type Splice, spliceAfter, spliceNear } from "./splice.ts";
import type { TemplateShape } from "./template-shape.ts";
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
  /** The last prompt as the template shows it. */
  #shown = "";
  /** How many completions there are. */
  #turns = 0;

  /** @throws ServiceError `template_refused` */
  constructor(model: TokenModel, messages: readonly Message[], options: ConversationOptions) {
    this.#model = model;
    this.#options = {
      variables: {},
      history: "template",
      now: new Date(),
      ...options,
    };
    this.#tools = options.tools;
    this.#variables = options.variables ?? {};
    this.#shape = model.shape(this.#tools, this.#variables);
    this.#messages = [...messages];
    this.#refuseUnshown();
    this.#begin(null);
  }

  /** What would end the rollout at a later turn ends it before the first. */
  #refuseUnshown(): void {
    const { notKept, shownCall } = this.#shape;
    const why = shownCall === null && this.#tools.length > 0 ? NO_CALLS : null;
    const message = why ?? (this.#options.history === "keep" ? notKept : null);
    if (message) throw new ServiceError("template_refused", message, { mend: OTHER_TEMPLATE });
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
    const before = this.#shown;
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
    this.#shown = text;
    this.#opened = this.#messages.length;
    this.#encoded = this.#messages.length;
  }

  /** Gives ids to the new messages, behind the turn as it was sampled; or begins anew where the template rewrites that. */
  #extend(): void {
    const before = this.#messages.slice(0, this.#encoded);
    const added = this.#messages.slice(this.#encoded);
    const assistant = before.pop();
    const spoke = this.#encoded > this.#opened && assistant?.role === "assistant";
    assert(spoke, "messages were added before the model spoke");
    const keeps = this.#options.history === "keep";
    const whole = keeps ? null : render(this.#rendering, this.#messages, true);
    const found =
      whole === null
        ? this.#closingOf(before, assistant, added)
        : this.#closingIn(whole, before, assistant, added);
    if ("rewritten" in found) {
      this.#begin({ reason: "template_rewrote_history", detail: () => found.rewritten });
      return;
    }
    this.#close(this.#model.tokenizer.encode(found.closing));
    this.#shown = whole ?? "";
    this.#encoded = this.#messages.length;
  }

  /**
   * What must follow the model's words so that the prompt is `whole`, which the template makes of all messages; or why
   * none that extends the last prompt can be. So it is the template that is asked at each turn, not a guess about it.
   */
  #closingIn(
    whole: string,
    before: Message[],
    assistant: AssistantMessage,
    added: Message[],
  ): Closing {
    if (!whole.startsWith(this.#shown)) return { rewritten: this.#whyRewritten(whole) };
    const rest = whole.slice(this.#shown.length);
    const said = this.#said;
    if (rest.startsWith(said) && this.#endsTurn(rest.slice(said.length))) {
      return { closing: rest.slice(said.length) };
    }
    // The model wrote it otherwise than the template does: where the template's turn ends must be found.
    if (this.#shape.form.calls === "one by one" && (assistant.tool_calls?.length ?? 0) > 1) {
      return { rewritten: "the template shows one call a turn, each with its result" };
    }
    // The beginning of the conversation is enough where it leads to what the whole prompt ends with.
    const near = spliceNear(this.#rendering, before, assistant, added);
    const isRight = near?.hidden === null && rest.endsWith(this.#closing(near));
    const splice = isRight ? near : spliceAfter(this.#rendering, before, assistant, added);
    if (splice === null) return { rewritten: "the template does not show the turn" };
    if (splice.hidden !== null) {
      const role = added.at(-1)?.role;
      return {
        rewritten: `the template drops the turn's ${splice.hidden} once a ${role} message follows`,
      };
    }
    const closing = this.#closing(splice);
    if (!rest.endsWith(closing)) {
      return { rewritten: "the template shows the end of the turn differently with other words" };
    }
    const missing = missingFrom(rest.slice(0, rest.length - closing.length), assistant);
    return missing === null ? { closing } : { rewritten: missing };
  }

  /** The same where earlier turns are kept whatever the template does with them. */
  #closingOf(before: Message[], assistant: AssistantMessage, added: Message[]): Closing {
    const { tool_calls = [] } = assistant;
    const isShownWhole = this.#shape.form.calls === "together" || tool_calls.length < 2;
    const last = isShownWhole ? assistant : { ...assistant, tool_calls: tool_calls.slice(-1) };
    const splice = spliceAfter(this.#rendering, before, last, added);
    if (splice) return { closing: this.#closing(splice) };
    const message = "the chat template does not show the turn, so that it can't be kept";
    throw new ServiceError("template_refused", message, { mend: REPORT_TEMPLATE });
  }

  #closing({ close, next }: Splice): string {
    const at = this.#ends.reduce((last, end) => Math.max(last, close.lastIndexOf(end)), -1);
    // What must follow the model's words: the end of its turn, or the opener of the next.
    const end = at < 0 ? (/\s*$/.exec(close)?.[0] ?? "") : close.slice(at);
    return end + next;
  }

  /** What the model wrote in its last turn, without what ended it. */
  get #said(): string {
    const { spans, ids } = this.#segment;
    const span = spans.at(-1);
    if (span?.kind !== "sampled") return "";
    const isStopped = this.#model.stopIds.has(ids[span.end - 1] as number);
    return this.#model.tokenizer.decode(ids.subarray(span.start, span.end - (isStopped ? 1 : 0)));
  }

  /** Whether the text that follows a turn begins with what ends one. */
  #endsTurn(text: string): boolean {
    const rest = text.trimStart();
    return this.#ends.some((end) => rest.startsWith(end));
  }

  #whyRewritten(whole: string): string {
    const dropped = this.#messages.some((message) => {
      const thought = message.role === "assistant" && message.reasoning_content?.trim();
      return thought && this.#shown.includes(thought) && !whole.includes(thought);
    });
    if (!dropped) return firstDifference(this.#shown, whole);
    const role = this.#messages.at(-1)?.role;
    return `the template drops earlier reasoning once a ${role} message follows`;
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
}

/** What follows the model's words, or why the template's prompt is no continuation of them. */
type Closing = { closing: string } | { rewritten: string };

const NO_CALLS = "the chat template shows no tool calls, and the rollout has tools";
const OTHER_TEMPLATE =
  "put a template that shows them into the model folder as chat_template.jinja";
const REPORT_TEMPLATE =
  "run `rolloutd verify-template` on the model folder and report what it prints";

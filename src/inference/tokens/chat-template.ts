import { ServiceError } from "../../errors.ts";
import type { ToolSchema } from "../engine.ts";
import { fromJs } from "./jinja/from-js.ts";
import { JinjaTemplate } from "./jinja/jinja-template.ts";
import { strftime } from "./jinja/strftime.ts";
import { textOf } from "./jinja/text.ts";
import { type Callable, TemplateError, type Value } from "./jinja/values.ts";

/** A message as templates see it: ours with the fields in the form that the template expects. */
export type TemplateMessage = { role: string; content: string | null; [field: string]: unknown };

export type RenderOptions = {
  addGenerationPrompt: boolean;
  /** Further variables of the template, such as `enable_thinking`. */
  variables?: Record<string, unknown>;
  /** What `strftime_now` tells, so that a rollout past midnight keeps its prompt. */
  now?: Date;
};

/** Messages as the text that a model sees, wherever it is made. */
export type Template = Pick<ChatTemplate, "render" | "text">;

/** A chat template, compiled once. */
export class ChatTemplate {
  /** Empty where it is not at hand. */
  readonly text: string;
  readonly #file: string;
  readonly #compiled: JinjaTemplate;
  readonly #specialTokens: Record<string, string>;
  /** Messages and tools as values of the template, which stay as long as they do. */
  readonly #values = new WeakMap<object, Value>();

  /** @throws ServiceError `model_folder_invalid` when it can't be parsed. */
  constructor(text: string, file: string, specialTokens: Record<string, string>) {
    this.text = text;
    this.#file = file;
    this.#specialTokens = specialTokens;
    try {
      this.#compiled = new JinjaTemplate(text);
    } catch (cause) {
      if (!(cause instanceof TemplateError)) throw cause;
      const message = `${file}: the chat template can't be parsed: ${cause.message}`;
      const mend = "name another template, or rewrite the construct that is not known";
      throw new ServiceError("model_folder_invalid", message, { mend, cause });
    }
  }

  /** @throws ServiceError `template_refused` when the template won't have these messages. */
  render(
    messages: readonly TemplateMessage[],
    tools: readonly ToolSchema[],
    options: RenderOptions,
  ): string {
    const { addGenerationPrompt, variables = {}, now = new Date() } = options;
    const strftimeNow: Callable = ([format]) => strftime(now, textOf(format));
    const globals = new Map<string, Value>([
      ["strftime_now", strftimeNow],
      ...Object.entries(this.#specialTokens),
      ...Object.entries(variables).map(([name, value]) => [name, fromJs(value)] as const),
      ["messages", messages.map((message) => this.#value(message))],
      // Without tools transformers passes none, and so it does for documents.
      ["tools", tools.length > 0 ? tools.map((tool) => this.#value(tool)) : null],
      ["documents", null],
      ["add_generation_prompt", addGenerationPrompt],
    ]);
    try {
      return this.#compiled.render(globals);
    } catch (cause) {
      if (!(cause instanceof TemplateError)) throw cause;
      const message = `${this.#file}: the chat template refuses: ${cause.message}`;
      throw new ServiceError("template_refused", message, { cause });
    }
  }

  /** A template can't change what it is given, so that each message is converted once. */
  #value(given: object): Value {
    const known = this.#values.get(given);
    if (known !== undefined) return known;
    const value = fromJs(given);
    this.#values.set(given, value);
    return value;
  }
}

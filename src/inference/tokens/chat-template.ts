import { Environment, Interpreter, parse, tokenize } from "@huggingface/jinja";
import { ServiceError } from "../../errors.ts";
import type { ToolSchema } from "../engine.ts";
import { PYTHON_TEXT, withPythonText } from "./python-text.ts";

/** A message as templates see it: ours with the fields in the form that the template expects. */
export type TemplateMessage = { role: string; content: string | null; [field: string]: unknown };

export type RenderOptions = {
  addGenerationPrompt: boolean;
  /** Further variables of the template, such as `enable_thinking`. */
  variables?: Record<string, unknown>;
  /** What `strftime_now` tells, so that a rollout past midnight keeps its prompt. */
  now?: Date;
};

type Program = ReturnType<typeof parse>;

/** Messages as the text that a model sees, wherever it is made. */
export type Template = Pick<ChatTemplate, "render" | "text">;

/** A chat template, compiled once. */
export class ChatTemplate {
  /** Empty where it is not at hand. */
  readonly text: string;
  readonly #file: string;
  readonly #program: Program;
  readonly #specialTokens: Record<string, string>;

  /** @throws ServiceError `model_folder_invalid` when it can't be parsed. */
  constructor(text: string, file: string, specialTokens: Record<string, string>) {
    this.text = text;
    this.#file = file;
    this.#specialTokens = specialTokens;
    try {
      const parsed = parse(tokenize(text, { lstrip_blocks: true, trim_blocks: true }));
      this.#program = withPythonText(parsed);
    } catch (cause) {
      const message = `${file}: the chat template can't be parsed: ${(cause as Error).message}`;
      const mend = "name another template, or rewrite the construct that is not known";
      throw new ServiceError("model_folder_invalid", message, { mend, cause });
    }
  }

  /** @throws ServiceError `template_refused` when the template won't have these messages. */
  render(messages: TemplateMessage[], tools: ToolSchema[], options: RenderOptions): string {
    const env = new Environment();
    const globals = {
      ...GLOBALS,
      ...PYTHON_TEXT,
      strftime_now: (format: string) => strftime(options.now ?? new Date(), format),
      ...this.#specialTokens,
      ...options.variables,
      messages,
      // Templates ask `if tools`, and some `tools is not none`: without tools there is none.
      ...(tools.length > 0 ? { tools } : { tools: null }),
      add_generation_prompt: options.addGenerationPrompt,
    };
    for (const [name, value] of Object.entries(globals)) env.set(name, value);
    try {
      return (new Interpreter(env).run(this.#program) as { value: string }).value;
    } catch (cause) {
      const message = `${this.#file}: the chat template refuses: ${(cause as Error).message}`;
      throw new ServiceError("template_refused", message, { cause });
    }
  }
}

/** What Jinja and transformers give every template. */
const GLOBALS = {
  true: true,
  True: true,
  false: false,
  False: false,
  none: null,
  None: null,
  range,
  raise_exception(message: string) {
    throw new Error(message);
  },
};

function range(first: number, second?: number, step = 1): number[] {
  const [start, stop] = second === undefined ? [0, first] : [first, second];
  const length = Math.max(0, Math.ceil((stop - start) / step));
  return Array.from({ length }, (_, index) => start + index * step);
}

const MONTHS =
  "January February March April May June July August September October November December";

/** The part of Python's that chat templates use, in English. */
function strftime(date: Date, format: string): string {
  const month = MONTHS.split(" ")[date.getMonth()] as string;
  const two = (value: number) => String(value).padStart(2, "0");
  const parts: Record<string, string> = {
    "%Y": String(date.getFullYear()),
    "%m": two(date.getMonth() + 1),
    "%d": two(date.getDate()),
    "%B": month,
    "%b": month.slice(0, 3),
    "%H": two(date.getHours()),
    "%M": two(date.getMinutes()),
    "%S": two(date.getSeconds()),
    "%%": "%",
  };
  return format.replace(/%./g, (directive) => parts[directive] ?? directive);
}

import { join } from "node:path";
import type { Message, ToolSchema } from "../../src/inference/engine.ts";
import type { MessageForm } from "../../src/inference/tokens/template-message.ts";
import { toTemplateMessages } from "../../src/inference/tokens/template-message.ts";
import { exactJson } from "../../src/lib/exact-json.ts";

export type Answer = { text: string; ids: number[] } | { refused: string };

/** Jinja as transformers runs it and the tokenizers of Rust, in a Python that has `jinja2` and `tokenizers`. */
export class Reference {
  readonly #process: Bun.Subprocess<"pipe", "pipe", "inherit">;
  readonly #lines: AsyncIterator<string>;

  constructor(python: string) {
    const script = join(import.meta.dir, "reference.py");
    const env = { ...process.env, TZ: "UTC" };
    this.#process = Bun.spawn([python, script], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
      env,
    });
    this.#lines = linesOf(this.#process.stdout);
  }

  async open(request: {
    open: string;
    template: string;
    special: object;
    tokenizer: string;
    added: string[];
  }) {
    return this.#ask(JSON.stringify(request));
  }

  render(
    name: string,
    messages: Message[],
    form: MessageForm,
    { tools, variables }: { tools: ToolSchema[]; variables: object },
  ): Promise<Answer> {
    const given = {
      render: name,
      messages: toTemplateMessages(messages, form),
      tools,
      variables,
      ids: true,
    };
    return this.#ask(exactJson(given)) as Promise<Answer>;
  }

  end(): void {
    this.#process.kill();
  }

  async #ask(line: string): Promise<object> {
    this.#process.stdin.write(`${line}\n`);
    this.#process.stdin.flush();
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("the reference in Python has ended");
    return JSON.parse(value);
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest: string[] = [];
  for await (const chunk of stream) {
    const [first = "", ...more] = decoder.decode(chunk, { stream: true }).split("\n");
    rest.push(first);
    for (const line of more) {
      yield rest.join("");
      rest = [line];
    }
  }
}

import { z } from "zod";
import type { Tool } from "../../agent/tool.ts";
import { ServiceError } from "../../errors.ts";
import type { Message, ToolSchema } from "../../inference/engine.ts";
import {
  type Posted,
  PostFailure,
  post,
  postJson,
  withRetries,
} from "../../verifiers/post-json.ts";

/** What a session is known by between its calls: cookies, by their names. */
export type Cookies = Record<string, string>;

const CLOSE_TIMEOUT_MS = 5_000;

type Options = { url: string; timeoutMs: number; signal: AbortSignal };

/** One session at a NeMo Gym resources server. Each answer's cookies take the place of those before. */
export class ResourcesServer {
  cookies: Cookies;
  readonly #options: Options;

  constructor(options: Options, cookies: Cookies = {}) {
    this.#options = options;
    this.cookies = cookies;
  }

  get url(): string {
    return this.#options.url;
  }

  /** What the server answers, of any status, is what the model sees: that is its protocol. */
  tool(schema: ToolSchema): Tool {
    return {
      schema,
      run: async (args) => {
        const { status, text } = await this.#guarded(() =>
          post(this.#address(schema.function.name), args, this.#postOptions()),
        );
        return { text, ok: status < 400 };
      },
    };
  }

  /** @throws ServiceError `reward_server_failed` */
  async verify(row: Record<string, unknown>, response: Record<string, unknown>): Promise<number> {
    const body = { ...row, response };
    const reply = await this.ask("verify", body, z.looseObject({ reward: z.number() }));
    return reply.reward;
  }

  /**
   * Posts `body` and reads what comes by its schema.
   *
   * @param mayRepeat the server takes the same body twice for one request
   * @throws ServiceError `reward_server_failed`
   */
  async ask<S extends z.ZodType>(
    path: string,
    body: unknown,
    schema: S,
    mayRepeat = false,
  ): Promise<z.output<S>> {
    const once = () => postJson(this.#address(path), body, this.#postOptions());
    const { json } = await this.#guarded(() =>
      mayRepeat ? withRetries(this.#options.signal, once) : once(),
    );
    const read = schema.safeParse(json);
    if (read.success) return read.data;
    const [issue] = read.error.issues;
    const field = issue?.path.join(".") || "body";
    throw this.#failed(`the ${field} of its answer to /${path}: ${issue?.message}`);
  }

  /** Tells the server that the session is over. A session that stays open changes no reward. */
  async close(body: unknown): Promise<void> {
    const { headers } = this.#postOptions();
    // The rollout's own signal may be what ended the session.
    const ended = { headers, timeoutMs: CLOSE_TIMEOUT_MS, signal: new AbortController().signal };
    await post(this.#address("close"), body, ended).catch(() => null);
  }

  async #guarded<T extends Pick<Posted, "cookies">>(work: () => Promise<T>): Promise<T> {
    try {
      const answer = await work();
      for (const cookie of answer.cookies) {
        const [, name, value] = cookie.match(/^([^=;]+)=([^;]*)/) ?? [];
        if (name !== undefined && value !== undefined) this.cookies[name.trim()] = value;
      }
      return answer;
    } catch (error) {
      if (error instanceof PostFailure) throw this.#failed(error.message);
      throw error;
    }
  }

  #address(path: string): string {
    return `${this.#options.url.replace(/\/+$/, "")}/${encodeURIComponent(path)}`;
  }

  #postOptions() {
    const { timeoutMs, signal } = this.#options;
    const pairs = Object.entries(this.cookies).map(([name, value]) => `${name}=${value}`);
    const headers: Record<string, string> = pairs.length > 0 ? { cookie: pairs.join("; ") } : {};
    return { headers, timeoutMs, signal };
  }

  #failed(why: string): ServiceError {
    const message = `the resources server at ${this.#options.url} failed: ${why}`;
    return new ServiceError("reward_server_failed", message);
  }
}

/** What was said behind the prompt, as the Responses API tells it. */
export function responseOf(messages: readonly Message[]) {
  const output = messages.flatMap((message, index) => itemsOf(message, index));
  return {
    id: "resp_rollout",
    object: "response",
    created_at: Math.floor(Date.now() / 1000),
    model: "policy",
    status: "completed",
    parallel_tool_calls: false,
    tool_choice: "auto",
    tools: [],
    output,
  };
}

export function itemsOf(message: Message, index: number): Record<string, unknown>[] {
  if (message.role === "tool") {
    const { tool_call_id: call_id, content: output } = message;
    return [{ type: "function_call_output", call_id, output }];
  }
  if (message.role !== "assistant") {
    return [{ type: "message", role: message.role, content: message.content }];
  }
  const text = { type: "output_text", text: message.content, annotations: [] };
  const id = `msg_${index}`;
  const said = { id, type: "message", role: "assistant", status: "completed", content: [text] };
  const calls = (message.tool_calls ?? []).map((call) => ({
    type: "function_call",
    call_id: call.id,
    name: call.function.name,
    arguments: call.function.arguments,
  }));
  return message.content === "" && calls.length > 0 ? calls : [said, ...calls];
}

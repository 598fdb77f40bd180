import type { Tool } from "../../agent/tool.ts";
import { ServiceError } from "../../errors.ts";
import type { Message, ToolSchema } from "../../inference/engine.ts";
import { type Posted, PostFailure, post, postJson } from "../../verifiers/post-json.ts";

/** What a session is known by between its calls: cookies, by their names. */
export type Cookies = Record<string, string>;

type Options = { url: string; timeoutMs: number; signal: AbortSignal };

/** One session at a NeMo Gym resources server. Each answer's cookies take the place of those before. */
export class ResourcesServer {
  cookies: Cookies;
  readonly #options: Options;

  constructor(options: Options, cookies: Cookies = {}) {
    this.#options = options;
    this.cookies = cookies;
  }

  async seed(row: Record<string, unknown>): Promise<void> {
    await this.#call("seed_session", row);
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
  async verify(row: Record<string, unknown>, messages: readonly Message[]): Promise<number> {
    const reply = (await this.#call("verify", { ...row, response: responseOf(messages) })) as {
      reward?: unknown;
    } | null;
    if (typeof reply?.reward === "number") return reply.reward;
    throw this.#failed("its answer has no reward");
  }

  async #call(path: string, body: unknown): Promise<unknown> {
    const { json } = await this.#guarded(() =>
      postJson(this.#address(path), body, this.#postOptions()),
    );
    return json;
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

/** A conversation as the Responses API tells it; the prompt is the row's own. */
function responseOf(messages: readonly Message[]) {
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

function itemsOf(message: Message, index: number): Record<string, unknown>[] {
  if (message.role === "tool") {
    const { tool_call_id: call_id, content: output } = message;
    return [{ type: "function_call_output", call_id, output }];
  }
  if (message.role !== "assistant") return [];
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

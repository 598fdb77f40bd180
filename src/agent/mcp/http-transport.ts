import { EventStream } from "../../inference/event-stream.ts";
import { parseWithTools } from "../../lib/exact-tools.ts";
import {
  MAX_MESSAGE_BYTES,
  type McpTransport,
  type RpcNotification,
  type RpcRequest,
  type RpcResponse,
} from "./transport.ts";

const SESSION = "mcp-session-id";
const CLOSE_LIMIT_MS = 1000;

/** A server behind a URL, by the protocol's "streamable HTTP". Redirects are refused. */
export class HttpTransport implements McpTransport {
  readonly #url: string;
  readonly #headers: Record<string, string>;

  constructor(url: string, headers: Record<string, string>) {
    this.#url = url;
    this.#headers = {
      ...headers,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
    };
  }

  async request(message: RpcRequest, signal: AbortSignal): Promise<RpcResponse> {
    const response = await this.#post(message, signal);
    const session = response.headers.get(SESSION);
    if (session !== null) this.#headers[SESSION] = session;
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
    if (isStream) return await answerIn(response, message.id);
    const chunks = await Array.fromAsync(bodyOf(response));
    return parseWithTools(Buffer.concat(chunks).toString()) as RpcResponse;
  }

  async notify(message: RpcNotification, signal: AbortSignal): Promise<void> {
    const response = await this.#post(message, signal);
    await response.body?.cancel();
  }

  agreed(protocolVersion: string): void {
    this.#headers["mcp-protocol-version"] = protocolVersion;
  }

  async close(): Promise<void> {
    if (this.#headers[SESSION] === undefined) return;
    const signal = AbortSignal.timeout(CLOSE_LIMIT_MS);
    const options = {
      method: "DELETE",
      headers: this.#headers,
      redirect: "error",
      signal,
    } as const;
    await fetch(this.#url, options).then(
      (response) => response.body?.cancel(),
      () => {},
    );
  }

  async #post(message: unknown, signal: AbortSignal): Promise<Response> {
    const response = await fetch(this.#url, {
      method: "POST",
      headers: this.#headers,
      body: JSON.stringify(message),
      redirect: "error",
      signal,
    });
    if (response.ok) return response;
    await response.body?.cancel();
    throw new Error(`HTTP ${response.status}`);
  }
}

/** The response with this id. The stream may go on after it; whatever else it tells is not asked for. */
async function answerIn(response: Response, id: number): Promise<RpcResponse> {
  let answer: RpcResponse | undefined;
  const events = new EventStream((data) => {
    const message = parseWithTools(data) as RpcResponse & { method?: string };
    if (message.method === undefined && message.id === id) answer ??= message;
  });
  for await (const chunk of bodyOf(response)) {
    events.push(chunk);
    if (answer) return answer;
  }
  throw new Error("the server ended its answer before it was complete");
}

/** @throws Error where it is too long */
async function* bodyOf({ body }: Response): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_MESSAGE_BYTES) throw new Error("a message of the server is too long");
    yield chunk;
  }
}

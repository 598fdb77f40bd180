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
    let text = "";
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.length > MAX_MESSAGE_BYTES) throw new Error("a message of the server is too long");
      // A stream may go on after the answer; whatever else it tells is not asked for.
      const found = isStream ? answerIn(text, message.id) : undefined;
      if (found) return found;
    }
    if (isStream) throw new Error("the server ended its answer before it was complete");
    return JSON.parse(text) as RpcResponse;
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

/** The response with this id among the events so far that are complete. */
function answerIn(text: string, id: number): RpcResponse | undefined {
  const events = text.split(/\r?\n\r?\n/).slice(0, -1);
  for (const event of events) {
    const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
    if (lines.length === 0) continue;
    const data = lines.map((line) => line.slice("data:".length).trimStart()).join("\n");
    const message = JSON.parse(data) as RpcResponse & { method?: string };
    if (message.method === undefined && message.id === id) return message;
  }
  return undefined;
}

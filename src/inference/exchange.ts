import http, { type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import https from "node:https";
import { lookupWithin, type Network } from "../lib/network.ts";

export type ExchangeRequest = {
  base: URL;
  /** Where the host's name may lead when a connection is made; anywhere without it. */
  networks?: readonly Network[] | undefined;
  path: string;
  method: "GET" | "POST";
  headers: Record<string, string>;
  body: Uint8Array | null;
  maxReplyBytes: number;
  /** Gets the body of a 2xx answer that is a stream of events; it is not kept then. */
  onEvents?: (chunk: Uint8Array) => void;
  /** A connection of its own, for a retry that must not meet another one that went stale. */
  fresh: boolean;
};

export type Answer = { status: number; headers: IncomingHttpHeaders; body: Uint8Array };

/**
 * `unreachable`: no connection. `reset`: it ended before an answer began. `lost`: it ended within
 * one. `garbage`: not HTTP, or encoded though it must not be. `oversized`: more than
 * `maxReplyBytes`.
 */
export type BreakKind = "unreachable" | "reset" | "lost" | "garbage" | "oversized";

export class BrokenExchange extends Error {
  readonly kind: BreakKind;

  constructor(kind: BreakKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "BrokenExchange";
    this.kind = kind;
  }
}

/**
 * Engines close idle connections after about 5 s; ours go first, so that few requests meet a closed
 * one.
 */
const IDLE_CONNECTION_MS = 1_500;
const MAX_IDLE_CONNECTIONS = 1_024;

/** Connections to engines, kept between calls. */
export class Connections {
  readonly #http = new http.Agent(AGENT_OPTIONS);
  readonly #https = new https.Agent(AGENT_OPTIONS);

  for(protocol: string): http.Agent {
    return protocol === "https:" ? this.#https : this.#http;
  }

  [Symbol.dispose](): void {
    this.#http.destroy();
    this.#https.destroy();
  }
}

const AGENT_OPTIONS = {
  keepAlive: true,
  timeout: IDLE_CONNECTION_MS,
  maxSockets: Number.POSITIVE_INFINITY,
  maxFreeSockets: MAX_IDLE_CONNECTIONS,
};

/**
 * One request and its whole answer, whatever its status. Redirects are not followed. An abort
 * closes the connection at once, in whatever state it is.
 *
 * It is built on `node:http` because `fetch` runs at most 256 requests at once in a process, of
 * which the slow calls of a few hundred rollouts would make a queue, and because it tells whether
 * an answer has begun.
 *
 * @throws BrokenExchange; the reason of `signal` as it is.
 */
export function exchange(
  connections: Connections,
  request: ExchangeRequest,
  signal: AbortSignal,
): Promise<Answer> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const { base, networks } = request;
  const outgoing = (base.protocol === "https:" ? https : http).request({
    protocol: base.protocol,
    hostname: base.hostname.replace(/^\[|\]$/g, ""),
    port: base.port || (base.protocol === "https:" ? 443 : 80),
    path: request.path,
    method: request.method,
    headers: request.headers,
    ...(networks && { lookup: lookupWithin(networks) }),
    agent: request.fresh ? false : connections.for(base.protocol),
  });
  const fail = (reason: unknown) => {
    reject(reason);
    outgoing.destroy();
  };
  const onAbort = () => fail(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });

  let answered = false;
  outgoing.on("response", (incoming) => {
    answered = true;
    collect(incoming, request).then(resolve, fail);
  });
  outgoing.on("error", (error) => fail(classify(error, answered)));
  // A connection that is closed right after it was accepted ends here without an error.
  outgoing.on("close", () => {
    if (!answered) fail(new BrokenExchange("reset", CLOSED_WITHOUT_ANSWER));
  });
  outgoing.end(request.body ?? undefined);
  return promise.finally(() => signal.removeEventListener("abort", onAbort));
}

function collect(
  incoming: IncomingMessage,
  { maxReplyBytes, onEvents }: Pick<ExchangeRequest, "maxReplyBytes" | "onEvents">,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const { headers, statusCode: status = 0 } = incoming;
  const isStream = headers["content-type"]?.startsWith("text/event-stream") ?? false;
  const take = isStream && status >= 200 && status < 300 ? onEvents : undefined;
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity") {
    const message = `the reply is encoded as ${encoding}, though identity was asked for`;
    reject(new BrokenExchange("garbage", message));
  }
  incoming.on("data", (chunk: Uint8Array) => {
    bytes += chunk.byteLength;
    if (bytes > maxReplyBytes) {
      const message = `the reply is larger than ${maxReplyBytes} bytes`;
      reject(new BrokenExchange("oversized", message));
      return;
    }
    if (!take) chunks.push(chunk);
    else {
      try {
        take(chunk);
      } catch (error) {
        reject(error);
      }
    }
  });
  incoming.on("end", () => {
    if (incoming.complete) {
      resolve({ status, headers, body: Buffer.concat(chunks) });
    }
  });
  const lost = (cause?: unknown) =>
    reject(new BrokenExchange("lost", `the connection was lost after ${bytes} bytes`, cause));
  incoming.on("error", lost);
  incoming.on("close", lost);
  return promise;
}

const CLOSED_WITHOUT_ANSWER = "it closed the connection without an answer";
const CLOSED = new Set(["ECONNRESET", "EPIPE", "ECONNABORTED"]);

function classify(error: NodeJS.ErrnoException, answered: boolean): BrokenExchange {
  const code = error.code ?? "";
  if (CLOSED.has(code)) {
    if (answered)
      return new BrokenExchange("lost", "the connection was lost within the reply", error);
    return new BrokenExchange("reset", CLOSED_WITHOUT_ANSWER, error);
  }
  const garbage = code.startsWith("HPE_");
  return new BrokenExchange(garbage ? "garbage" : "unreachable", error.message, error);
}

import { lookup } from "node:dns/promises";
import { chmodSync, existsSync, unlinkSync } from "node:fs";
import { isIP } from "node:net";
import type { Hono } from "hono";
import { ServiceError } from "../errors.ts";
import { atMost } from "../lib/abortable.ts";
import { admitTcp, checkAddress } from "./door.ts";
import { errorResponse } from "./error-response.ts";
import type { ServerEnv } from "./parts.ts";
import type { TokenFile } from "./tokens.ts";
import { freeSocket } from "./unix-socket.ts";

export type Listening = {
  url: string;
  socket: string;
  /** Takes no new connection, and resolves when the open requests are answered; who does not take the answer is cut. */
  stop(): Promise<void>;
};

export type Address = {
  host: string;
  port: number;
  socket: string;
  /** Who may use the TCP port; null for everyone who reaches it. */
  tokens: TokenFile | null;
  /** Whether everyone may be others than this machine. */
  anonymous: boolean;
  /** Certificate and private key as PEM. */
  tls: { cert: string; key: string } | null;
  /** Requests that are open at once, those that wait included. */
  maxRequests: number;
  /** Silence after which a connection is closed; requests that wait for a job are exempt. */
  idleTimeoutS?: number;
  stopMs?: number;
  /** Resolves when all that an answer may tell would survive a power cut; null where it would already. */
  durable(): Promise<void> | null;
};

const IDLE_TIMEOUT_S = 30;

/** So long a stop waits for clients to take what they asked for. */
const STOP_MS = 5000;

/**
 * Serves the same routes over TCP and over a Unix socket that only this user can open.
 * @throws ServiceError `data_dir_unusable`, `data_dir_in_use`, `invalid_field`
 */
export async function listen(app: Hono<ServerEnv>, address: Address): Promise<Listening> {
  const { host, port, socket, tls, idleTimeoutS = IDLE_TIMEOUT_S, stopMs = STOP_MS } = address;
  checkAddress(address);
  const serving = (clientOf: (request: Request, from: string) => string) => ({
    // The routes bound a body themselves, to answer with a typed error.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    async fetch(request: Request, server: Bun.Server<undefined>) {
      try {
        if (server.pendingRequests > address.maxRequests) throw tooManyRequests();
        const named = withHost(request);
        const client = clientOf(named, server.requestIP(request)?.address ?? "unknown");
        let kept = false;
        const keepOpen = () => {
          kept = true;
          server.timeout(request, 0);
        };
        const closeIfStuck = () => server.timeout(request, 1);
        const response = await app.fetch(named, { keepOpen, closeIfStuck, client });
        await address.durable();
        // Only the wait is exempt: a client that does not take its answer is no longer waiting.
        if (kept && !isStream(response)) server.timeout(request, idleTimeoutS);
        return response;
      } catch (error) {
        return errorResponse(error);
      }
    },
  });
  await freeSocket(socket);
  const umask = process.umask(0o177);
  let unix: Bun.Server<undefined>;
  try {
    // `server.timeout` has no effect here, so a long poll would be cut. Only this user can open the socket.
    const local = serving(() => "socket");
    unix = Bun.serve({ ...local, unix: socket, idleTimeout: 0 } as typeof local & {
      unix: string;
    });
  } finally {
    process.umask(umask);
  }
  chmodSync(socket, 0o600);
  let tcp: Bun.Server<undefined>;
  try {
    const secured = tls ? { tls } : {};
    const door = serving((request, from) => admitTcp(request, from, address));
    tcp = Bun.serve({ ...door, ...secured, hostname: host, port, idleTimeout: idleTimeoutS });
  } catch (error) {
    await unix.stop(true);
    throw addressError(error, host, port);
  }
  return {
    url: `${tls ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${tcp.port}`,
    socket,
    async stop() {
      const stopped = Promise.all([tcp.stop(), unix.stop()]);
      const isOver = await atMost(
        stopped.then(() => true),
        stopMs,
        false,
      );
      if (!isOver) await Promise.all([tcp.stop(true), unix.stop(true)]);
      if (existsSync(socket)) unlinkSync(socket);
    },
  };
}

/**
 * The request with a whole URL. Probes in HTTP/1.0 name no host, which is no page's doing: browsers always name one.
 *
 * @throws ServiceError `invalid_field` for a host or a target that makes no URL
 */
function withHost(request: Request): Request {
  const { url } = request;
  if (URL.canParse(url)) return request;
  if (url.startsWith("/") && !request.headers.get("host")) {
    return new Request(`http://localhost${url}`, request);
  }
  const message = "the host that the request names makes no address with its path";
  throw new ServiceError("invalid_field", message, { field: "host" });
}

/** One that goes on as long as its reader takes it, and looks after that itself. */
function isStream(response: Response): boolean {
  return response.headers.get("content-type") === "text/event-stream";
}

function tooManyRequests(): ServiceError {
  const mend = "come back later; the operator can raise max_requests";
  return new ServiceError("too_many_waiting", "too many requests are open", { mend });
}

/**
 * Finds out whether the TCP port can be had, by having it for a moment: what can't be is told before anything begins.
 * @throws ServiceError `invalid_field`
 */
export async function tryAddress(address: Pick<Address, "host" | "port" | "tls">): Promise<void> {
  const { host, port, tls } = address;
  const fetch = () => new Response(null, { status: 503 });
  try {
    if (isIP(host) === 0) await lookup(host);
    const server = Bun.serve({ hostname: host, port, ...(tls && { tls }), fetch });
    await server.stop(true);
  } catch (error) {
    throw addressError(error, host, port);
  }
}

const FREE_PORT = "choose another with --port (0 takes a free one)";

/** Of a host that is none Bun tells various codes, so every other failure is the host's. */
function addressError(error: unknown, host: string, port: number): ServiceError {
  const { code, message } = error as { code?: string; message: string };
  const refuse = (field: string, why: string, mend: string) =>
    new ServiceError("invalid_field", why, { field, mend, cause: error });
  if (code?.startsWith("ERR_OSSL")) {
    const mend = "give tls_cert and tls_key that belong together, both as PEM";
    return refuse("tls_cert", `the certificate and key can't be used: ${message}`, mend);
  }
  if (code === "EADDRINUSE") {
    const mend = `${FREE_PORT}, or stop the program that has it`;
    return refuse("port", `--port: ${host}:${port} is in use`, mend);
  }
  if (code === "EACCES" && port > 0 && port < 1024) {
    const why = `--port: port ${port} is not for this user: those below 1024 are root's`;
    return refuse("port", why, FREE_PORT);
  }
  const mend =
    "use an address of this machine (`ip addr` lists them), 0.0.0.0 for all, or 127.0.0.1";
  const why =
    code === "ENOTFOUND"
      ? "is a name that nobody knows"
      : `is no address of this machine (${code ?? message})`;
  return refuse("host", `--host: ${host} ${why}`, mend);
}

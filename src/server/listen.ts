import { chmodSync, existsSync, unlinkSync } from "node:fs";
import type { Hono } from "hono";
import { ServiceError } from "../errors.ts";
import type { ServerEnv } from "./parts.ts";

export type Listening = {
  url: string;
  socket: string;
  /** Takes no new connection, and resolves when the open requests are answered. */
  stop(): Promise<void>;
};

/** The kernel's limit for the path of a Unix socket. Units: bytes. */
const MAX_SOCKET_PATH = 107;

/** Silence after which a connection is closed; requests that wait for a job are exempt. */
const IDLE_TIMEOUT_S = 30;

/**
 * Serves the same routes over TCP and over a Unix socket that only this user can open.
 *
 * @throws ServiceError `data_dir_unusable`, `data_dir_in_use`
 */
export async function listen(
  app: Hono<ServerEnv>,
  { host, port, socket }: { host: string; port: number; socket: string },
): Promise<Listening> {
  const options = {
    // The routes bound a body themselves, to answer with a typed error.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: (request: Request, server: Bun.Server<undefined>) =>
      app.fetch(request, {
        keepOpen: () => server.timeout(request, 0),
        client: server.requestIP(request)?.address ?? "socket",
      }),
  };
  await freeSocket(socket);
  const umask = process.umask(0o177);
  let unix: Bun.Server<undefined>;
  try {
    // `server.timeout` has no effect here, so a long poll would be cut. Only this user can open the socket.
    unix = Bun.serve({ ...options, unix: socket, idleTimeout: 0 } as typeof options & {
      unix: string;
    });
  } finally {
    process.umask(umask);
  }
  chmodSync(socket, 0o600);
  let tcp: Bun.Server<undefined>;
  try {
    tcp = Bun.serve({ ...options, hostname: host, port, idleTimeout: IDLE_TIMEOUT_S });
  } catch (error) {
    await unix.stop(true);
    throw addressError(error, host, port);
  }
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${tcp.port}`,
    socket,
    async stop() {
      await Promise.all([tcp.stop(), unix.stop()]);
      if (existsSync(socket)) unlinkSync(socket);
    },
  };
}

/** Removes what a killed predecessor left; refuses when someone still answers there. */
async function freeSocket(path: string): Promise<void> {
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH) {
    const message = `the socket path ${path} is longer than ${MAX_SOCKET_PATH} bytes`;
    throw new ServiceError("data_dir_unusable", message, { mend: "set a shorter --socket" });
  }
  if (!existsSync(path)) return;
  const answers = await fetch("http://localhost/healthz", { unix: path }).then(
    () => true,
    () => false,
  );
  if (answers) {
    const message = `another server listens on ${path}`;
    throw new ServiceError("data_dir_in_use", message, { mend: "stop it, or set --socket" });
  }
  unlinkSync(path);
}

function addressError(error: unknown, host: string, port: number): unknown {
  if ((error as { code?: string }).code !== "EADDRINUSE") return error;
  const mend = "choose another with --port (0 takes a free one), or stop the program that has it";
  return new ServiceError("data_dir_in_use", `${host}:${port} is in use`, { mend, cause: error });
}

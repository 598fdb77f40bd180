import { statSync } from "node:fs";
import { type ErrorBody, fromErrorBody, ServiceError } from "../errors.ts";
import type { BatchView } from "../protocol/batch-view.ts";
import type { GroupView } from "../protocol/group-view.ts";
import type { TimelineView } from "../protocol/timeline.ts";
import type { RolloutView } from "../protocol/view.ts";
import type { BackendView, DecisionView } from "../server/parts.ts";
import type { Trajectory } from "../trajectory/record.ts";
import { UsageError } from "./flags.ts";

export type Page = { rollouts: RolloutView[]; next: number };
export type GroupPage = { groups: GroupView[]; next: number; over: boolean };
export type StatusView = {
  version: string;
  draining: boolean;
  unfinished: number;
  finished_cursor: number;
  stages: Record<string, { pending: number; active: number; slots: number }>;
  weights: { version: string | null; paused: string | null };
};

type Query = Record<string, string | number | undefined>;

/** The native API as the commands use it, over TCP or, for a path, over a Unix socket. */
export class ApiClient {
  readonly #base: string;
  readonly #unix: string | undefined;
  readonly #shown: string;

  /** @param server `http://host:port`, or the path of a Unix socket @throws UsageError */
  constructor(server: string) {
    const { url, unix } = serverAddress(server);
    this.#shown = server;
    this.#unix = unix;
    this.#base = url;
  }

  submit(rollouts: unknown[], query: Query = {}): Promise<{ rollouts: RolloutView[] }> {
    return this.#call("POST", "/v1/rollouts", query, { rollouts });
  }

  rollout(id: string, query: Query = {}): Promise<RolloutView> {
    return this.#call("GET", `/v1/rollouts/${encodeURIComponent(id)}`, query);
  }

  trajectory(id: string): Promise<Trajectory> {
    return this.#call("GET", `/v1/rollouts/${encodeURIComponent(id)}/trajectory`);
  }

  timeline(id: string): Promise<TimelineView> {
    return this.#call("GET", `/v1/rollouts/${encodeURIComponent(id)}/timeline`);
  }

  cancel(id: string, query: Query = {}): Promise<RolloutView> {
    return this.#call("DELETE", `/v1/rollouts/${encodeURIComponent(id)}`, query);
  }

  /** Asks for the end of all that have a label. */
  cancelLabelled(query: Query): Promise<{ cancelled: number }> {
    return this.#call("DELETE", "/v1/rollouts", query);
  }

  rescore(id: string, query: Query = {}): Promise<RolloutView> {
    return this.#call("POST", `/v1/rollouts/${encodeURIComponent(id)}/rescore`, query, {});
  }

  list(query: Query): Promise<Page> {
    return this.#call("GET", "/v1/rollouts", query);
  }

  submitBatch(batch: Record<string, unknown>): Promise<BatchView> {
    return this.#call("POST", "/v1/batches", {}, batch);
  }

  batch(id: string, query: Query = {}): Promise<BatchView> {
    return this.#call("GET", `/v1/batches/${encodeURIComponent(id)}`, query);
  }

  addInstances(id: string, instances: Record<string, unknown>): Promise<{ added: number }> {
    return this.#call("POST", `/v1/batches/${encodeURIComponent(id)}/instances`, {}, instances);
  }

  batchGroups(id: string, query: Query): Promise<GroupPage> {
    return this.#call("GET", `/v1/batches/${encodeURIComponent(id)}/groups`, query);
  }

  cancelBatch(id: string): Promise<BatchView> {
    return this.#call("DELETE", `/v1/batches/${encodeURIComponent(id)}`);
  }

  status(): Promise<StatusView> {
    return this.#call("GET", "/v1/status");
  }

  backends(): Promise<{ backends: BackendView[] }> {
    return this.#call("GET", "/v1/backends");
  }

  addBackend(backend: Record<string, string | undefined>): Promise<BackendView> {
    return this.#call("POST", "/v1/backends", {}, backend);
  }

  removeBackend(id: string, query: Query = {}): Promise<{ removed: string }> {
    return this.#call("DELETE", `/v1/backends/${encodeURIComponent(id)}`, query);
  }

  drainBackend(id: string, query: Query = {}): Promise<{ draining: string }> {
    return this.#call("POST", `/v1/backends/${encodeURIComponent(id)}/drain`, query);
  }

  decisions(query: Query = {}): Promise<{ decisions: DecisionView[] }> {
    return this.#call("GET", "/v1/backends/decisions", query);
  }

  /** @throws ServiceError as the server gave it, or `server_unreachable` */
  async #call<T>(method: string, path: string, query: Query = {}, body?: unknown): Promise<T> {
    const url = new URL(this.#base + path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const response = await this.#send(url, method, body);
    const text = await response.text();
    const json = parse(text);
    if (response.ok && json !== undefined) return json as T;
    const error = (json as { error?: ErrorBody } | undefined)?.error;
    if (error?.code) throw fromErrorBody(error);
    const message = `${this.#shown} does not answer like rolloutd (HTTP ${response.status})`;
    throw new ServiceError("server_unreachable", message, { mend: "check --server" });
  }

  async #send(url: URL, method: string, body: unknown): Promise<Response> {
    const init: BunFetchRequestInit = { method, redirect: "error" };
    if (this.#unix) init.unix = this.#unix;
    const token = process.env.ROLLOUTD_TOKEN;
    if (token) init.headers = { authorization: `Bearer ${token}` };
    if (body !== undefined) init.body = JSON.stringify(body);
    try {
      return await fetch(url, { ...init, timeout: false } as BunFetchRequestInit);
    } catch (error) {
      const message = `no rolloutd answers at ${this.#shown}`;
      const mend = "start one with `rolloutd serve`, or name it with --server";
      throw new ServiceError("server_unreachable", message, { mend, cause: error });
    }
  }
}

/**
 * A server as a person names it: `http://host:port`, or the path of a Unix socket.
 * @throws UsageError
 */
export function serverAddress(server: string): { url: string; unix: string | undefined } {
  const refuse = (why: string) =>
    new UsageError(
      `--server takes http://HOST:PORT or the path of a socket, not "${server}"${why}`,
    );
  if (/^https?:\/\//i.test(server) && URL.canParse(server)) {
    return { url: server.replace(/\/+$/, ""), unix: undefined };
  }
  if (/^[\w.-]+:\d+\/?$/.test(server)) throw refuse(` (did you mean http://${server}?)`);
  if (server === "" || /^[a-z+]+:/i.test(server)) throw refuse("");
  const there = statSync(server, { throwIfNoEntry: false });
  if (there && !there.isSocket()) throw refuse(", which is no socket");
  return { url: "http://localhost", unix: server };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const DEFAULT_SERVER = "http://127.0.0.1:8006";

export const SERVER_HELP = `  --server ADDRESS  http://host:port or the path of the Unix socket [${DEFAULT_SERVER}, or ROLLOUTD_SERVER]
                    (a server with tokens: ROLLOUTD_TOKEN)
`;

export function clientFor(server: string | undefined): ApiClient {
  return new ApiClient(server ?? process.env.ROLLOUTD_SERVER ?? DEFAULT_SERVER);
}

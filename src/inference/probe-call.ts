import { ServiceError } from "../errors.ts";
import type { Endpoint, RouteRoot } from "./endpoint.ts";
import type { Backend } from "./engine.ts";
import { askEngine, callEngine } from "./engine-call.ts";
import type { Connections } from "./exchange.ts";

/** What every request of one probe shares. */
export type Probe = {
  connections: Connections;
  endpoint: Endpoint;
  backend: Backend;
  timeoutMs: number;
  signal: AbortSignal;
};

/** A busy moment while a backend is being added is no reason to refuse it. */
export const PROBE_RETRIES = { maxRetries: 3, backoffMs: 100, maxBackoffMs: 1_000 };

export const PROBE_REPLY_BYTES = 4 * 1024 * 1024;

/** How a server says that it has no such route, or does not understand what came there. */
const REFUSALS = new Set(["engine_refused", "engine_bad_reply", "context_exhausted"]);

/** What was refused where `error` is a refusal. @throws anything else */
export function refusal(error: unknown): string {
  if (error instanceof ServiceError && REFUSALS.has(error.code)) return error.message;
  throw error;
}

/** What comes of a POST; null where it is refused. @throws ServiceError `engine_*` */
export async function post(probe: Probe, path: string, body: object): Promise<unknown> {
  const call = { ...callOf(probe, "root", path), method: "POST" as const, body: () => body };
  try {
    return await callEngine(probe.connections, call, PROBE_RETRIES, probe.signal);
  } catch (error) {
    refusal(error);
    return null;
  }
}

/** The JSON of one route. @throws ServiceError `engine_*` */
export function get(probe: Probe, root: RouteRoot, path: string): Promise<unknown> {
  return callEngine(probe.connections, callOf(probe, root, path), PROBE_RETRIES, probe.signal);
}

/** The text of one route; null where there is none. @throws ServiceError `engine_*` */
export async function getText(probe: Probe, path: string): Promise<string | null> {
  const call = callOf(probe, "root", path);
  try {
    const { body } = await askEngine(probe.connections, call, PROBE_RETRIES, probe.signal);
    return new TextDecoder().decode(body);
  } catch (error) {
    refusal(error);
    return null;
  }
}

/** The fields of one route; none where it is missing or no object. @throws ServiceError `engine_*` */
export async function getFields(probe: Probe, path: string): Promise<Record<string, unknown>> {
  try {
    return asRecord(await get(probe, "root", path));
  } catch (error) {
    refusal(error);
    return {};
  }
}

export function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

export function asText(value: unknown): string | null {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : null;
}

export function asCount(value: unknown): number | null {
  return Number.isInteger(value) && (value as number) >= 1 ? (value as number) : null;
}

function callOf({ endpoint, backend, timeoutMs }: Probe, root: RouteRoot, path: string) {
  return {
    endpoint,
    method: "GET" as const,
    root,
    path,
    headers: {},
    body: null,
    requestId: `probe.${backend.id}`,
    timeoutMs,
    maxReplyBytes: PROBE_REPLY_BYTES,
  };
}

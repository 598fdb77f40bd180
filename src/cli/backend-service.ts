import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { type ErrorCode, ServiceError } from "../errors.ts";
import type { Backend } from "../inference/engine.ts";
import type { EngineProfile } from "../inference/engine-profile.ts";
import { differenceOf } from "../inference/one-pool.ts";
import { probeBackend } from "../inference/probe.ts";
import type { BackendRegistry } from "../inference/registry.ts";
import { loadTokenModel } from "../inference/tokens/token-model.ts";
import type { Clock } from "../lib/clock.ts";
import { NETWORKS, type Network } from "../lib/network.ts";
import type { AddBackend, Backends, BackendView } from "../server/parts.ts";
import type { Store } from "../store/store.ts";
import type { Log } from "../telemetry/log.ts";
import { requireNetwork } from "./backend-network.ts";
import { viewOfBackend, viewOfDecision } from "./backend-view.ts";

const PROBE_TIMEOUT_MS = 10_000;

/** An inference server that has answered, with all that is needed to call it. */
export type ExaminedBackend = {
  request: AddBackend;
  id: string;
  url: string;
  key: { apiKey?: string };
  folder: { modelDir?: string };
  probed: { model: string; profile: EngineProfile };
};

/**
 * Finds out what an inference server is, and whether its model's folder and key are there; nothing is kept.
 *
 * @param env what a backend's key may be taken from
 * @throws ServiceError `invalid_field`, `address_forbidden`, `model_folder_invalid`, `engine_*`
 */
export async function examineBackend(
  request: AddBackend,
  env: Record<string, string | undefined>,
  networks: readonly Network[],
  signal: AbortSignal,
): Promise<ExaminedBackend> {
  const { model, api_key_env, model_dir, engine = "auto" } = request;
  const url = request.url.replace(/\/+$/, "");
  if (!URL.canParse(url)) throw noUrl(request.url);
  await requireNetwork(new URL(url), networks, "url");
  const key = keyFrom(env, api_key_env ?? null);
  const named = model === undefined ? {} : { model };
  const id = backendId(url);
  const how = { engine, timeoutMs: PROBE_TIMEOUT_MS, signal };
  const folder = model_dir === undefined ? {} : { modelDir: resolve(model_dir) };
  if (folder.modelDir) await loadTokenModel(folder.modelDir);
  const probed = await probeBackend(url, { id, networks, ...named, ...key, ...how }).catch(
    (error) => {
      throw withMend(error);
    },
  );
  return { request, id, url, key, folder, probed };
}

/** Keeps the registry and the table of inference servers the same; starts with what the table has. */
export function createBackends(
  registry: BackendRegistry,
  store: Store,
  clock: Clock,
  log: Log,
  /** What a backend's key may be taken from. */
  env: Record<string, string | undefined>,
  /** Somebody may go on now, or elsewhere. */
  changed: () => void = () => {},
  networks: readonly Network[] = NETWORKS,
): Backends & { admit(examined: ExaminedBackend): BackendView } {
  for (const row of store.backends.list()) {
    const { id, url, model, api_key_env, profile, model_dir, leaving, routed } = row;
    if (routed) registry.add({ id, url, networks, model, routed: true });
    else if (api_key_env === null || env[api_key_env]) {
      const probed = profile === null ? {} : { profile: JSON.parse(profile) as EngineProfile };
      const folder = model_dir === null ? {} : { modelDir: model_dir };
      const key = keyFrom(env, api_key_env);
      registry.add({ id, url, networks, model, ...key, ...probed, ...folder });
      if (leaving !== null) registry.drain(id, leaving);
    } else {
      const mend = `set ${api_key_env}, name it in --backend-key-envs, and start again; or add it anew`;
      log.warn("a backend is left out: its key is not set", { backend: id, mend });
    }
  }
  const view = (id: string): BackendView => {
    const entry = registry.list().find(({ backend }) => backend.id === id);
    if (!entry) throw new ServiceError("not_found", `backend "${id}" was removed meanwhile`);
    return viewOfBackend(entry);
  };
  const admit = ({ request, id, url, key, folder, probed }: ExaminedBackend): BackendView => {
    const row = { id, url, model: probed.model, api_key_env: request.api_key_env ?? null };
    const backend = { id, url, networks, ...probed, ...key, ...folder };
    refuseAnother(registry, backend);
    const profile = JSON.stringify(probed.profile);
    const saved = {
      ...row,
      added_ms: clock.nowMs(),
      profile,
      model_dir: folder.modelDir ?? null,
      leaving: null,
      routed: 0,
    };
    store.transaction(() => store.backends.save(saved));
    registry.add(backend);
    changed();
    const { rung, passed_over } = probed.profile;
    if (folder.modelDir && (rung === "chat" || rung === "chat_ids")) {
      const what =
        "a backend takes no token ids, so its rollouts are by text, whatever its model folder";
      log.warn(what, { backend: id, passed_over });
    }
    return view(id);
  };
  return {
    list: () => registry.list().map(viewOfBackend),
    decisions: (limit, id) => registry.decisions.last(limit, id).map(viewOfDecision),
    async add(request, signal) {
      return admit(await examineBackend(request, env, networks, signal));
    },
    admit,
    remove(id, trajectories) {
      if (!registry.remove(id, trajectories)) return false;
      store.transaction(() => store.backends.delete(id));
      changed();
      return true;
    },
    drain(id, trajectories) {
      if (!registry.drain(id, trajectories)) return false;
      store.transaction(() => store.backends.saveLeaving(id, trajectories));
      changed();
      return true;
    },
  };
}

function noUrl(text: string): ServiceError {
  const mend = "such as http://127.0.0.1:8000/v1";
  return new ServiceError("invalid_field", `url: "${text}" is no URL`, { field: "url", mend });
}

const MENDS: Partial<Record<ErrorCode, string>> = {
  engine_unreachable: "start the engine first, or correct its URL (http://HOST:PORT/v1)",
  engine_timeout: "it may still be loading its model: try again when URL/models answers",
  engine_bad_reply: "check the URL: it is that of an OpenAI-compatible server, with /v1",
};

/** What to do about an engine that does not answer as one when it is added. */
function withMend(error: unknown): unknown {
  if (!(error instanceof ServiceError) || error.mend !== undefined) return error;
  const { code, message, field, cause } = error;
  const mend = MENDS[code];
  return mend === undefined ? error : new ServiceError(code, message, { field, mend, cause });
}

/** A trajectory may have to go on elsewhere, with its ids: so all backends are of one kind. */
export function refuseAnother(registry: BackendRegistry, backend: Backend): void {
  const other = registry.list().find((entry) => entry.backend.id !== backend.id && !entry.leaving);
  const difference = other ? differenceOf(other.backend, backend) : null;
  if (!other || difference === null) return;
  const { field, what } = difference;
  const message = `it can't be in one pool with backend "${other.backend.id}": ${what}`;
  const mend =
    "remove or drain the others first (rolloutd backends; a service that does not start is started without --backend), or start another service for it";
  throw new ServiceError("backend_differs", message, { field, mend });
}

/** Readable, the same for the same address, and another for any other. */
export function backendId(url: string): string {
  const readable = new URL(url).host.replace(/[^A-Za-z0-9.]+/g, "-").replace(/^-|-$/g, "");
  const digest = createHash("sha256").update(url).digest("hex");
  return `${readable}-${digest.slice(0, 6)}`;
}

function keyFrom(
  env: Record<string, string | undefined>,
  name: string | null,
): { apiKey?: string } {
  if (name === null) return {};
  const apiKey = Object.hasOwn(env, name) ? env[name] : undefined;
  if (apiKey) return { apiKey };
  // One that is set and not for this looks the same as one that is not set.
  throw new ServiceError("invalid_field", `the variable ${name} is not set for backends`, {
    field: "api_key_env",
    mend: `start rolloutd serve with ${name} in its environment and in --backend-key-envs`,
  });
}

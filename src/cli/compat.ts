import type { Hono } from "hono";
import { gymRoutes } from "../compat/nemo-gym/routes.ts";
import { type Addresses, ProrlGateway } from "../compat/prorl/gateway.ts";
import { prorlRoutes } from "../compat/prorl/routes.ts";
import type { Config } from "../config/settings.ts";
import { hubFolder } from "../inference/tokens/hub-folder.ts";
import type { ServerEnv, ServerParts } from "../server/parts.ts";
import type { Accept } from "./accept.ts";
import { gymServers } from "./task-settings.ts";

/** So long a rollout goes on whose client left without an id to come back with. */
const DISCONNECT_GRACE_MS = 10_000;

type CompatParts = Pick<ServerParts, "store" | "scheduler" | "backends" | "gate"> & {
  addresses: Addresses;
  accept: Accept;
};

/** The APIs of others, beside our own on the same addresses. */
export function mountCompat(app: Hono<ServerEnv>, config: Config, parts: CompatParts): void {
  const maxBodyBytes = config.max_body_bytes;
  const gateway = new ProrlGateway({
    ...parts,
    tokenizerFolder: (name) => hubFolder(name, process.env),
    settings: {
      timeoutMs: config.prorl_timeout_ms,
      disconnectGraceMs: Math.min(DISCONNECT_GRACE_MS, config.compat_adopt_ms),
      keepMs: config.compat_adopt_ms,
      inputIds: config.prorl_input_ids,
    },
  });
  gateway.endLeftovers();
  app.route("/", prorlRoutes(gateway, { ...parts, maxBodyBytes }));
  const settings = {
    statusMode: config.gym_status_mode,
    adoptMs: config.compat_adopt_ms,
    servers: gymServers(config),
  };
  const model = () => parts.backends.list()[0]?.model ?? "";
  app.route("/", gymRoutes({ ...parts, model, maxBodyBytes, settings }));
}

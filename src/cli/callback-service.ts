import { readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import type { Config } from "../config/settings.ts";
import { ServiceError } from "../errors.ts";
import type { Clock } from "../lib/clock.ts";
import { httpPost } from "../lib/http-post.ts";
import { type Network, networkOf, resolveAllowed } from "../lib/network.ts";
import { Callbacks } from "../pipeline/callbacks.ts";
import { viewRollout } from "../protocol/view.ts";
import type { Store } from "../store/store.ts";
import type { Log } from "../telemetry/log.ts";

const POST_TIMEOUT_MS = 10_000;
const MIN_SECRET_CHARS = 16;

export type CallbackService = {
  /** @throws ServiceError `invalid_field`, `address_forbidden` */
  check(url: string): void;
  /** Begins to deliver; null where no secret is set. */
  start(store: Store, clock: Clock, log: Log): Callbacks | null;
};

/** Reads the secret once, so that a missing one is told at start. @throws ServiceError `invalid_field` */
export function callbackService(
  config: Config,
  env: Record<string, string | undefined>,
): CallbackService {
  const secret = readSecret(config.callback_secret_file, env);
  const allowed = config.callback_networks.split(",") as Network[];
  return {
    check(url) {
      if (secret === null) throw noSecret();
      const { hostname } = new URL(url);
      const host = hostname.replace(/^\[|\]$/g, "");
      const network = isIP(host) ? networkOf(host) : allowed[0];
      if (network && allowed.includes(network)) return;
      const message = `callback_url: ${host} is in no allowed network`;
      const mend = `use a ${allowed.join(" or ")} address; the operator sets callback_networks`;
      throw new ServiceError("address_forbidden", message, { field: "callback_url", mend });
    },
    start(store, clock, log) {
      if (secret === null) return null;
      const post = async (text: string, headers: Record<string, string>, body: string) => {
        const url = new URL(text);
        const address = await resolveAllowed(url, allowed);
        const sent = { url, address, headers, body, maxReplyBytes: 0 };
        return (await httpPost(sent, AbortSignal.timeout(POST_TIMEOUT_MS))).status;
      };
      const render = (row: Parameters<typeof viewRollout>[0]) => JSON.stringify(viewRollout(row));
      return new Callbacks({ store, clock, log, secret, render, post });
    },
  };
}

function readSecret(
  file: string | undefined,
  env: Record<string, string | undefined>,
): string | null {
  const field = { field: "callback_secret_file" };
  if (file === undefined) {
    const secret = env.ROLLOUTD_CALLBACK_SECRET || null;
    if (secret !== null && secret.length < MIN_SECRET_CHARS) {
      throw tooShort("ROLLOUTD_CALLBACK_SECRET", field);
    }
    return secret;
  }
  try {
    if (statSync(file).mode & 0o077) {
      const message = `others can read the secret in ${file}`;
      throw new ServiceError("invalid_field", message, { ...field, mend: `chmod 600 ${file}` });
    }
    const secret = readFileSync(file, "utf8").trim();
    if (secret.length >= MIN_SECRET_CHARS) return secret;
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw new ServiceError("invalid_field", `${file} can't be read`, { ...field, cause: error });
  }
  throw tooShort(file, field);
}

function tooShort(where: string, field: { field: string }): ServiceError {
  const mend = `give it at least ${MIN_SECRET_CHARS} characters: openssl rand -hex 32`;
  return new ServiceError("invalid_field", `the secret in ${where} is too short`, {
    ...field,
    mend,
  });
}

function noSecret(): ServiceError {
  const mend = "start the server with --callback-secret-file, or leave callback_url out";
  const message = "callback_url: this server has no secret to sign callbacks with";
  return new ServiceError("invalid_field", message, { field: "callback_url", mend });
}

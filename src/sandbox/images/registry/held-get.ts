import { readFileSync } from "node:fs";
import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import { isIP } from "node:net";
import { urlToHttpOptions } from "node:url";
import { ServiceError } from "../../../errors.ts";
import { lookupWithin, networkOf } from "../../../lib/network.ts";
import type { Registry } from "./registries.ts";

const MAX_REDIRECTS = 5;
/** Silence after which a registry is given up. */
const IDLE_MS = 60_000;

type Get = {
  registry: Registry;
  headers: Record<string, string>;
  /** Sent to the first address alone, whatever it redirects to. */
  authorization: string | null;
  signal: AbortSignal;
};

/**
 * One GET of a pull. The address, and each one that it redirects to, has to be one of the registry's, by its name and
 * by what the name leads to at that moment.
 *
 * @throws ServiceError `address_forbidden`, `image_unreachable`
 */
export async function heldGet(address: URL, get: Get): Promise<IncomingMessage> {
  let url = address;
  for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
    requireOrigin(url, get.registry);
    const isFirst = url.origin === address.origin;
    const authorization = isFirst ? get.authorization : null;
    const response = await getOnce(url, { ...get, authorization });
    const { statusCode: status = 0, headers } = response;
    if (![301, 302, 303, 307, 308].includes(status) || !headers.location) return response;
    response.destroy();
    if (!URL.canParse(headers.location, url.href)) break;
    url = new URL(headers.location, url);
  }
  const message = `${address.host} redirects nowhere, or for ever`;
  throw new ServiceError("image_unreachable", message);
}

/** @throws ServiceError `address_forbidden` */
export function requireOrigin(url: URL, registry: Registry): void {
  // The origin of a blob's URL is that of the address in it.
  const isPlain = /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
  if (isPlain && registry.origins.includes(url.origin)) return;
  const message = `the registry ${registry.host} leads to ${url.origin}, which is not among its addresses`;
  const mend = `if it belongs to it, the operator writes --registries ${registry.host}+${url.host}`;
  throw new ServiceError("address_forbidden", message, { field: "image", mend });
}

function getOnce(url: URL, { headers, authorization, signal }: Get): Promise<IncomingMessage> {
  signal.throwIfAborted();
  const secure = url.protocol === "https:";
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request = (secure ? https : http).request({
    ...urlToHttpOptions(url),
    headers: { ...headers, ...(authorization === null ? {} : { authorization }) },
    timeout: IDLE_MS,
    ...connection(url, secure),
  });
  const onAbort = () => request.destroy(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  request.on("timeout", () => request.destroy(new Error(`silent for ${IDLE_MS / 1000} s`)));
  request.on("response", resolve);
  request.on("error", (error) => reject(signal.aborted ? signal.reason : unreachable(url, error)));
  request.on("close", () => signal.removeEventListener("abort", onAbort));
  request.end();
  return promise;
}

/** Through the environment's proxy, which resolves names itself, or to an address that is looked at. */
function connection(url: URL, secure: boolean): https.RequestOptions {
  const ca = process.env.SSL_CERT_FILE;
  const trusted = secure && ca ? { ca: readFileSync(ca) } : {};
  if (isProxied(url, process.env)) {
    const Agent = secure ? https.Agent : http.Agent;
    return { ...trusted, agent: new Agent({ proxyEnv: process.env } as https.AgentOptions) };
  }
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0 && networkOf(host) === null) {
    throw new ServiceError("address_forbidden", `${host} is no address of a registry`, {
      field: "image",
    });
  }
  // A name that the operator gave to this machine is the only one that may lead to it.
  const lookup = lookupWithin(host === "localhost" ? ["loopback"] : ["private", "public"]);
  return { ...trusted, agent: false, lookup };
}

function isProxied({ protocol, hostname }: URL, env: Record<string, string | undefined>): boolean {
  const kind = protocol.slice(0, -1);
  if (!(env[`${kind}_proxy`] || env[`${kind.toUpperCase()}_PROXY`])) return false;
  const host = hostname.replace(/^\[|\]$/g, "");
  if (host === "localhost" || networkOf(host) === "loopback") return false;
  const without = (env.no_proxy ?? env.NO_PROXY ?? "").split(",").map((each) => each.trim());
  return !without.some(
    (each) => each === "*" || (each !== "" && `.${host}`.endsWith(`.${each.replace(/^\./, "")}`)),
  );
}

function unreachable(url: URL, error: Error): unknown {
  if (error instanceof ServiceError) return error;
  const message = `${url.host} can't be reached: ${error.message}`;
  return new ServiceError("image_unreachable", message, { cause: error });
}

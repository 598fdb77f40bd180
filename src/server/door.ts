import { isIP } from "node:net";
import { ServiceError } from "../errors.ts";
import { clientOfToken, PROBE } from "../jobs/owner.ts";
import { networkOf } from "../lib/network.ts";
import type { TokenFile } from "./tokens.ts";

/** Probes of a load balancer carry no token, and are told nothing. */
const OPEN_PATHS = ["/healthz", "/readyz"];

/** Exactly one host: two `Host` headers arrive as one with a comma, and neither is to be believed. */
const HOST = /^(\[[\da-f:.]+\]|[\w.-]+)(:\d{1,5})?$/i;

/** Who may come in; see `Address`. The Unix socket has neither tokens nor strangers. */
export type Door = { tokens: TokenFile | null; anonymous: boolean };

export const SOCKET_DOOR: Door = { tokens: null, anonymous: false };

/**
 * Lets a request in and says whose it is: the name of its token, or `from` where it comes from. TCP and the Unix
 * socket have one rule, because a tunnel (`ssh -L PORT:…/rolloutd.sock`) makes a port of the socket.
 *
 * @throws ServiceError `invalid_field`, `unauthorized`, `foreign_origin`
 */
export function admit(request: Request, from: string, { tokens, anonymous }: Door): string {
  const host = request.headers.get("host");
  if (host !== null && !HOST.test(host)) throw noHost();
  const url = new URL(request.url);
  refuseForeignPage(request.headers, url);
  if (tokens === null) {
    if (!anonymous) refuseForeignName(url.hostname);
    return from;
  }
  const name = tokens.nameOf(request.headers.get("authorization"));
  if (name !== null) return clientOfToken(name);
  if (OPEN_PATHS.includes(url.pathname)) return PROBE;
  const mend = "send `Authorization: Bearer TOKEN` with a token of the server's --token-file";
  throw new ServiceError("unauthorized", "this port needs a token", { mend });
}

/** Browsers tell the page that asks: with `Origin` what changes something, with `Sec-Fetch-Site` everything. */
function refuseForeignPage(headers: Headers, url: URL): void {
  const origin = headers.get("origin");
  const site = headers.get("sec-fetch-site");
  const isForeign = origin !== null && origin !== url.origin;
  if (!isForeign && (site === null || site === "same-origin" || site === "none")) return;
  const page = isForeign ? `a page of ${origin.slice(0, 200)}` : "a page of another site";
  const mend = "call this from a program, or open its address in the browser itself";
  throw new ServiceError("foreign_origin", `${page} may not call this`, { mend });
}

/** A name that a foreign DNS server gives to this machine makes its page's requests look like our own. */
function refuseForeignName(hostname: string): void {
  const host = hostname.replace(/^\[|\]$/g, "");
  if (host === "localhost" || (isIP(host) !== 0 && networkOf(host) === "loopback")) return;
  const mend = "use http://127.0.0.1 or http://localhost, or start the server with --token-file";
  throw new ServiceError("foreign_origin", `"${host}" is no name of this service`, { mend });
}

export function noHost(): ServiceError {
  const message = "the host that the request names makes no address with its path";
  return new ServiceError("invalid_field", message, {
    field: "host",
    mend: "send one Host header with a name or an address, and a port if any",
  });
}

/** @throws ServiceError `invalid_field` for an address that others reach, without a token */
export function checkAddress({ host, tokens, anonymous }: Door & { host: string }): void {
  const loopback = host === "localhost" || networkOf(host) === "loopback";
  if (loopback || tokens !== null || anonymous) return;
  throw new ServiceError("invalid_field", `everyone who reaches ${host} could use this service`, {
    field: "host",
    mend: "give it a --token-file, keep --host 127.0.0.1, or say --allow-anonymous",
  });
}

import { isIP } from "node:net";
import { ServiceError } from "../errors.ts";
import { networkOf } from "../lib/network.ts";
import type { TokenFile } from "./tokens.ts";

/** Probes of a load balancer carry no token, and are told nothing. */
const OPEN_PATHS = ["/healthz", "/readyz"];

/** Who may come in by TCP; see `Address`. */
type Door = { tokens: TokenFile | null; anonymous: boolean };

/**
 * Lets a request of the TCP port in and says whose it is: the name of its token, or its address.
 *
 * @throws ServiceError `unauthorized`, `foreign_origin`
 */
export function admitTcp(request: Request, address: string, { tokens, anonymous }: Door): string {
  if (tokens === null) {
    refuseForeignPage(request, anonymous);
    return address;
  }
  const name = tokens.nameOf(request.headers.get("authorization"));
  if (name !== null) return `token:${name}`;
  if (OPEN_PATHS.includes(new URL(request.url).pathname)) return address;
  const mend = "send `Authorization: Bearer TOKEN` with a token of the server's --token-file";
  throw new ServiceError("unauthorized", "this port needs a token", { mend });
}

/** Without a token the port trusts this machine, but not the web pages that its browsers show. */
function refuseForeignPage(request: Request, anonymous: boolean): void {
  const host = new URL(request.url).hostname.replace(/^\[|\]$/g, "");
  const origin = request.headers.get("origin");
  const ours =
    anonymous || host === "localhost" || (isIP(host) !== 0 && networkOf(host) === "loopback");
  const sameOrigin = origin === null || origin === new URL(request.url).origin;
  if (ours && sameOrigin) return;
  const mend = "use http://127.0.0.1 or http://localhost, or start the server with --token-file";
  const message = ours
    ? `a page of ${origin} may not call this`
    : `"${host}" is no name of this port`;
  throw new ServiceError("foreign_origin", message, { mend });
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

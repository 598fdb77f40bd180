import { ServiceError } from "../errors.ts";

/**
 * An address from a row, which the service calls only where the operator has allowed it: a row must not reach what
 * the node's user can reach.
 *
 * @param allowed addresses below which all is allowed
 * @throws ServiceError `invalid_field`
 */
export function requireAllowedUrl(text: string, allowed: readonly string[], field: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.hash) {
    const message = `${field}: must be an http or https URL without credentials`;
    throw new ServiceError("invalid_field", message, { field });
  }
  if (allowed.some((each) => covers(new URL(each), url))) return url;
  const mend = `start the server with --task-urls ${url.origin}`;
  const message = `${field}: ${url.origin} is not among the addresses that rows may name`;
  throw new ServiceError("invalid_field", message, { field, mend });
}

function covers(allowed: URL, url: URL): boolean {
  const folder = allowed.pathname.endsWith("/") ? allowed.pathname : `${allowed.pathname}/`;
  return allowed.origin === url.origin && `${url.pathname}/`.startsWith(folder);
}

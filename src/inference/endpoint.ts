import { ServiceError } from "../errors.ts";
import type { Network } from "../lib/network.ts";
import type { Backend } from "./engine.ts";

/** Where a backend is called, and how it is named in errors: never with its key. */
export type Endpoint = {
  base: URL;
  networks?: readonly Network[] | undefined;
  apiKey: string | undefined;
  shown: string;
};

/** @throws ServiceError `invalid_field` for an address or a key that can't be used. */
export function endpointOf(backend: Pick<Backend, "id" | "url" | "apiKey" | "networks">): Endpoint {
  const { id, url, apiKey, networks } = backend;
  const base = URL.canParse(url) ? new URL(url) : undefined;
  if (base?.protocol !== "http:" && base?.protocol !== "https:") {
    throw wrong(id, "url", "must be an http: or https: URL, with /v1");
  }
  if (base.username !== "" || base.password !== "") {
    throw wrong(id, "url", "must not hold a user or a password; give the key by itself");
  }
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw wrong(id, "api_key", "must be printable ASCII without spaces");
  }
  const shown = `backend "${id}" (${base.origin}${base.pathname})`;
  return { base, networks, apiKey, shown };
}

/** `v1` is the base address; `root` what is above its `/v1`, where engines have their own routes. */
export type RouteRoot = "v1" | "root";

/** The address of one route: the query of the base address stays, as some gateways need it. */
export function routeOf({ base }: Endpoint, root: RouteRoot, path: string): string {
  const v1 = base.pathname.replace(/\/+$/, "");
  return `${root === "v1" ? v1 : v1.replace(/\/v1$/, "")}${path}${base.search}`;
}

function wrong(id: string, field: string, message: string): ServiceError {
  return new ServiceError("invalid_field", `backend "${id}": ${field} ${message}`, { field });
}

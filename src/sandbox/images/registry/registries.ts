import { ServiceError } from "../../../errors.ts";
import { DOCKER_HUB, type ImageName } from "./image-name.ts";

/** A registry that the operator names, and every address that a pull from it may connect to. */
export type Registry = {
  /** As a reference names it. */
  host: string;
  /** Where its API is. */
  api: string;
  /** `https://HOST`, or `http://HOST` where the operator has written so. */
  origins: string[];
};

/** Where well-known registries keep their tokens and layers. Source: their operators' lists for firewalls. */
const COMPANIONS = new Map<string, string[]>([
  [
    DOCKER_HUB,
    [
      "registry-1.docker.io",
      "auth.docker.io",
      "production.cloudflare.docker.com",
      "production.cloudfront.docker.com",
      "docker-images-prod.6aa30f8b08e16409b46e0173d6de2f56.r2.cloudflarestorage.com",
    ],
  ],
  ["ghcr.io", ["pkg-containers.githubusercontent.com"]],
  ["quay.io", ["cdn.quay.io", "cdn01.quay.io", "cdn02.quay.io", "cdn03.quay.io"]],
  ["registry.gitlab.com", ["gitlab.com", "cdn.registry.gitlab-static.net"]],
  ["nvcr.io", ["authn.nvidia.com", "layers.nvcr.io"]],
]);

/**
 * `HOST[:PORT][+HOST…]`, with commas between several. Behind a + are the addresses of its token service and of its
 * storage; `http://` before a host means that it is asked without TLS.
 *
 * @throws ServiceError `invalid_field`
 */
export function parseRegistries(text: string, field = "registries"): Registry[] {
  return text.split(",").flatMap((part) => {
    const entry = part.trim();
    if (entry === "") return [];
    const [own = "", ...others] = entry.split("+").map((each) => originOf(each.trim(), field));
    const { host } = new URL(own);
    const known = COMPANIONS.get(host) ?? [];
    const api = host === DOCKER_HUB ? "https://registry-1.docker.io" : own;
    return { host, api, origins: [own, ...others, ...known.map((each) => `https://${each}`)] };
  });
}

function originOf(text: string, field: string): string {
  const full = /^https?:\/\//i.test(text) ? text : `https://${text}`;
  const url = URL.canParse(full) ? new URL(full) : null;
  if (url && full.toLowerCase() === url.origin) return url.origin;
  const message = `${field}: "${text}" is no host of a registry`;
  const mend = "write HOST or HOST:PORT in lower case, with http:// before it where it has no TLS";
  throw new ServiceError("invalid_field", message, { field, mend });
}

/** @throws ServiceError `address_forbidden` for a registry that the operator has not named */
export function registryOf({ host }: ImageName, registries: readonly Registry[]): Registry {
  const found = registries.find((each) => each.host === host);
  if (found) return found;
  const message = `the registry ${host} is not among those that images may come from`;
  const mend = `the operator allows it with --registries ${host}, or brings the image here with \`rolloutd images add\``;
  throw new ServiceError("address_forbidden", message, { field: "image", mend });
}

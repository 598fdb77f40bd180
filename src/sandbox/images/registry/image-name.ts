import { ServiceError } from "../../../errors.ts";

/** What a reference of `docker://` or `oras://` asks of which registry. */
export type ImageName = {
  /** In one spelling, with a port that is not HTTPS's: what an entry of the operator's list has to be. */
  host: string;
  repository: string;
  /** A digest, or else a tag. */
  reference: string;
};

export const DOCKER_HUB = "docker.io";
const ALIASES = ["index.docker.io", "registry-1.docker.io"];

// The grammar of the distribution specification: no credentials, no trailing dot, nothing that is escaped.
const WORD = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?";
const HOST = new RegExp(`^(?:${WORD}(?:\\.${WORD})*|\\[[0-9a-f:.]+\\])(?::\\d{1,5})?$`);
const PART = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*";
const PATH = new RegExp(
  `^(${PART}(?:/${PART})*)(?::(\\w[\\w.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$`,
);

/** @throws ServiceError `image_invalid` */
export function parseImageName(uri: string): ImageName {
  const rest = /^(?:docker|oras):\/\/(.+)$/s.exec(uri)?.[1] ?? "";
  const slash = rest.indexOf("/");
  const first = slash === -1 ? "" : rest.slice(0, slash);
  // As Docker has it: what could be nobody's folder at Docker Hub is a host.
  const isHost = first === "localhost" || /[^a-z0-9_-]/.test(first);
  const host = isHost ? hostOf(first) : DOCKER_HUB;
  const [, path, tag, digest] = PATH.exec(isHost ? rest.slice(slash + 1) : rest) ?? [];
  if (host === null || path === undefined) {
    throw new ServiceError("image_invalid", `${uri.slice(0, 300)} is no reference of an image`, {
      mend: "write docker://HOST/NAME:TAG or docker://HOST/NAME@sha256:…",
    });
  }
  const isOfficial = host === DOCKER_HUB && !path.includes("/");
  return {
    host,
    repository: isOfficial ? `library/${path}` : path,
    reference: digest ?? tag ?? "latest",
  };
}

/** Null for what is no host and port, and nothing else. */
function hostOf(text: string): string | null {
  const lower = text.toLowerCase();
  if (!HOST.test(lower) || !URL.canParse(`https://${lower}`)) return null;
  const { host } = new URL(`https://${lower}`);
  return ALIASES.includes(host) ? DOCKER_HUB : host;
}

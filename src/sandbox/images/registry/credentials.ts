import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { DOCKER_HUB } from "./image-name.ts";

/** Docker Hub's place in the files of `docker login`. */
const HUB_KEYS = ["https://index.docker.io/v1/", "index.docker.io", "registry-1.docker.io"];

type Logins = { auths?: Record<string, { auth?: unknown }> };

/**
 * What `apptainer registry login`, `singularity` or `docker login` has kept for a registry, as HTTP's Basic
 * authorization; null where there is none. Helper programs are not run.
 */
export function loginFor(host: string, env: Record<string, string | undefined>): string | null {
  const home = env.HOME ?? homedir();
  const files = [
    join(home, ".apptainer", "docker-config.json"),
    join(home, ".singularity", "docker-config.json"),
    join(env.DOCKER_CONFIG ?? join(home, ".docker"), "config.json"),
  ];
  const keys = [host, `https://${host}`, ...(host === DOCKER_HUB ? HUB_KEYS : [])];
  for (const { auths = {} } of files.map(readLogins)) {
    for (const key of keys) {
      const auth = Object.hasOwn(auths, key) ? auths[key]?.auth : undefined;
      if (typeof auth === "string" && /^[A-Za-z0-9+/=]+$/.test(auth)) return `Basic ${auth}`;
    }
  }
  return null;
}

function readLogins(path: string): Logins {
  try {
    return (JSON.parse(readFileSync(path, "utf8")) as Logins | null) ?? {};
  } catch {
    return {};
  }
}

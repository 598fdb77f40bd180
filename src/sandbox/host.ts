import { join } from "node:path";
import { sandboxPaths } from "./directory.ts";
import type { IsolationLevel, SandboxLimits } from "./sandbox.ts";
import { NO_MAPPINGS } from "./shared-memory.ts";
import type { Launch } from "./start.ts";

/** The supervisor straight on the host. It isolates nothing: for tests only. */
export function hostLaunch(dir: string, limits: SandboxLimits): Launch {
  const { assets, home } = sandboxPaths("host", dir);
  // Without a user namespace the kernel counts all that the user runs, so only the watchdog limits processes.
  const unlimited = { ...limits, processes: Number.MAX_SAFE_INTEGER };
  const argv = [join(assets, "supervisor"), ...supervisorArguments(unlimited, home, null)];
  return { argv, env: {}, level: null };
}

/**
 * A sandbox of root's is, to the kernel, still the host's root where files are concerned. So the supervisor
 * seals what of the host's is in reach, and needs capabilities from its starter for it.
 */
export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** @param boundBytes size that the supervisor gives to the file system of /tmp; 0: it has one. */
export function supervisorArguments(
  limits: SandboxLimits,
  home: string,
  level: IsolationLevel | null,
  boundBytes = 0,
): string[] {
  const { processes, openFiles, fileBytes } = limits;
  const seal = level !== null && isRoot() ? "1" : "0";
  return [
    `${processes}`,
    `${openFiles}`,
    `${fileBytes}`,
    home,
    level ?? "0",
    seal,
    `${boundBytes}`,
    NO_MAPPINGS,
  ];
}

import { join } from "node:path";
import { sandboxPaths } from "./directory.ts";
import type { SandboxLimits } from "./sandbox.ts";
import type { Launch } from "./start.ts";

/** The supervisor straight on the host. It isolates nothing: for tests only. */
export function hostLaunch(dir: string, limits: SandboxLimits): Launch {
  const { assets, home } = sandboxPaths("host", dir);
  return { argv: [join(assets, "supervisor"), ...supervisorArguments(limits, home)], env: {} };
}

export function supervisorArguments(limits: SandboxLimits, home: string): string[] {
  return [`${limits.processes}`, `${limits.openFiles}`, `${limits.fileBytes}`, home];
}

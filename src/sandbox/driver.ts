import { join } from "node:path";
import { ApptainerLauncher } from "./apptainer.ts";
import { type Assets, installAssets } from "./assets.ts";
import { sandboxDirectory } from "./directory.ts";
import { hostLaunch } from "./host.ts";
import { checkImage } from "./image.ts";
import type { DriverName, SandboxDriver, SandboxSpec } from "./sandbox.ts";
import { startSupervisor } from "./start.ts";

export type DriverOptions = {
  /** Ours alone, on a local disk: `assets/` and configuration go here, sandboxes into `sandboxes/`. */
  dataDir: string;
  /** The Apptainer or Singularity program, by path or name. */
  apptainer: string;
  /** Start without a network namespace where the node has none. Says so nowhere by itself. */
  allowSharedNetwork?: boolean;
};

/** Where a data folder's sandboxes are: for the reaper. */
export function sandboxRoot(dataDir: string): string {
  return join(dataDir, "sandboxes");
}

export function createDriver(name: DriverName, options: DriverOptions): SandboxDriver {
  const launcher = name === "apptainer" ? new ApptainerLauncher(options) : null;
  let assets: Assets | null = null;
  return {
    name,
    async start(spec: SandboxSpec, signal: AbortSignal) {
      signal.throwIfAborted();
      const dir = sandboxDirectory(sandboxRoot(options.dataDir), spec.id);
      if (launcher) await checkImage(spec.image);
      const launch = launcher
        ? await launcher.launch(dir, spec, signal)
        : hostLaunch(dir, spec.limits);
      assets ??= installAssets(join(options.dataDir, "assets"));
      try {
        return await startSupervisor(name, dir, assets.all, launch, spec, signal);
      } catch (error) {
        throw launcher ? launcher.explain(error) : error;
      }
    },
  };
}

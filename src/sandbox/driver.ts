import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { ApptainerLauncher } from "./apptainer.ts";
import { type Assets, installAssets } from "./assets.ts";
import { BestLevel } from "./best-level.ts";
import { BubblewrapLauncher } from "./bubblewrap.ts";
import { sandboxDirectory } from "./directory.ts";
import { hostLaunch } from "./host.ts";
import { checkImage } from "./image.ts";
import type { DriverName, IsolationLevel, SandboxDriver, SandboxSpec } from "./sandbox.ts";
import { type Launch, startSupervisor } from "./start.ts";
import { startWithAttempts } from "./start-attempts.ts";

export type DriverOptions = {
  /** Ours alone, on a local disk: `assets/` and configuration go here, sandboxes into `sandboxes/`. */
  dataDir: string;
  /** The Apptainer or Singularity program, by path or name. */
  apptainer: string;
  /** The bubblewrap program, by path or name. */
  bwrap: string;
  /** Below this level no sandbox starts. */
  minIsolation: IsolationLevel;
  /** How often a start that fails for a passing reason is tried, within the time of one start. */
  startAttempts: number;
  /** The folder for sandboxes' cgroups; null: the watchdog alone keeps their limits. */
  cgroups?: string | null;
};

function noSandboxes(): ServiceError {
  const mend = "start it with --driver apptainer or bubblewrap";
  return new ServiceError("sandbox_unavailable", "this service has no sandboxes", { mend });
}

/** Where a data folder's sandboxes are: for the reaper. */
export function sandboxRoot(dataDir: string): string {
  return join(dataDir, "sandboxes");
}

/** @param name `none` for one that starts nothing: of jobs that an earlier service has taken on */
export function createDriver(name: DriverName | "none", options: DriverOptions): SandboxDriver {
  if (name === "none") return { name: "host", start: () => Promise.reject(noSandboxes()) };
  let installed: Assets | null = null;
  const assets = () => (installed ??= installAssets(join(options.dataDir, "assets")));
  const start = async (
    spec: SandboxSpec,
    signal: AbortSignal,
    launch: (dir: string) => Launch | Promise<Launch>,
  ) => {
    signal.throwIfAborted();
    const dir = sandboxDirectory(sandboxRoot(options.dataDir), spec.id);
    const launched = await launch(dir);
    const cgroups = options.cgroups ?? null;
    return await startSupervisor(
      name,
      dir,
      assets().inside,
      { ...launched, cgroups },
      spec,
      signal,
    );
  };
  if (name === "host") {
    return {
      name,
      start: (spec, signal) => start(spec, signal, (dir) => hostLaunch(dir, spec.limits)),
    };
  }
  const stage = () => assets().stage;
  const launcher =
    name === "apptainer"
      ? new ApptainerLauncher({ ...options, stage })
      : new BubblewrapLauncher({ ...options, stage });
  const best = new BestLevel(options, (level, spec, signal) =>
    start(spec, signal, (dir) => launcher.launch(dir, spec, level, signal)),
  );
  return {
    name,
    async start(spec, signal) {
      signal.throwIfAborted();
      await checkImage(spec.image);
      const explained = async (spec: SandboxSpec, signal: AbortSignal) => {
        try {
          return await best.start(spec, signal);
        } catch (error) {
          throw launcher.explain(error);
        }
      };
      return await startWithAttempts(explained, spec, options.startAttempts, signal);
    },
  };
}

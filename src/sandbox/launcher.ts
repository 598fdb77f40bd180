import type { IsolationLevel, SandboxSpec } from "./sandbox.ts";
import type { Launch } from "./start.ts";

/** How a driver makes the namespaces in which our supervisor is PID 1. */
export interface Launcher {
  /** @throws ServiceError `sandbox_unavailable`, or the reason of `signal`. */
  launch(
    dir: string,
    spec: SandboxSpec,
    level: IsolationLevel,
    signal: AbortSignal,
  ): Promise<Launch>;
  /** Says what to do where the program's own words don't. */
  explain(error: unknown): unknown;
}

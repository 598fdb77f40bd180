import type { ControlChannel } from "./control-channel.ts";
import type { SandboxPaths } from "./environment.ts";

/** What an attached thread's shells and Python session share. */
export type AttachedContext = {
  channel: ControlChannel;
  /** The sandbox's folder on the host. */
  dir: string;
  paths: SandboxPaths;
  env: Record<string, string>;
};

import type { ControlChannel } from "./control-channel.ts";
import type { SandboxPaths } from "./environment.ts";
import type { SandboxHandle } from "./sandbox.ts";

/** What an attached thread's shells and Python session share. */
export type AttachedContext = {
  channel: ControlChannel;
  handle: SandboxHandle;
  paths: SandboxPaths;
  env: Record<string, string>;
};

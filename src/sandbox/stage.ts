import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { emptyImage } from "./best-level.ts";
import { spawned } from "./programs.ts";
import type { SandboxSpec } from "./sandbox.ts";
import type { SifMount } from "./sif-mount.ts";

/** What `stage.c` lays ready below a sandbox's `stage` folder, in the namespace of its starter only. */
export const STAGE_FOLDER = "stage";

/** A program that only sees its arguments are missing has been started: all before it worked. */
const NO_ARGUMENTS = 2;
const PROBE_MS = 20_000;

/**
 * Puts what makes the root file system in front of the program that starts the sandbox with it.
 * @param mount of an image that is a file
 */
export function stageArguments(
  stage: string,
  dir: string,
  spec: SandboxSpec,
  mount: SifMount | null,
): string[] {
  const layer = spec.writable === "overlay" ? join(dir, "overlay") : "";
  return [
    ...[stage, join(dir, STAGE_FOLDER), spec.image, `${spec.limits.tmpfsBytes}`, layer],
    ...[mount?.program ?? "", mount?.options ?? ""],
  ];
}

/**
 * Why the node can't do what `stage.c` needs: a user namespace, and an overlay and a RAM disk in it. Null: it
 * can. It takes a few milliseconds.
 */
export async function whyNoStage(stage: string, dataDir: string): Promise<string | null> {
  const { text, exitCode } = await tryStage(stage, dataDir, null);
  return exitCode === NO_ARGUMENTS ? null : text.trim() || `it ended with ${exitCode}`;
}

/** Why the node does not let `stage.c` mount what a FUSE program serves. Null: it does. As fast. */
export async function whyNoFuseMount(stage: string, dataDir: string): Promise<string | null> {
  // A server that ends at once: the mount is made before it is needed.
  const { text } = await tryStage(stage, dataDir, { program: stage, options: "" });
  return /stage: (\/dev\/fuse|the image's FUSE mount) failed.*/.exec(text)?.[0] ?? null;
}

async function tryStage(stage: string, dataDir: string, mount: SifMount | null) {
  const folder = join(dataDir, "assets", "stage-probe");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const served = [mount?.program ?? "", mount?.options ?? ""];
  const argv = [stage, folder, await emptyImage(dataDir), "1000000", "", ...served, stage];
  const mend = "Choose a data_dir from which programs may be run: on a local disk without noexec.";
  const asked = spawned(stage, mend, () =>
    Bun.spawn(argv, {
      env: {},
      stdio: ["ignore", "ignore", "pipe"],
      timeout: PROBE_MS,
      killSignal: "SIGKILL",
      // Of a process group of its own: it kills that when the server ends.
      detached: true,
    }),
  );
  const [text, exitCode] = await Promise.all([asked.stderr.text(), asked.exited]);
  return { text, exitCode };
}

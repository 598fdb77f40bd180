import { constants, existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ServiceError } from "../errors.ts";
import { isAccessible } from "../lib/is-accessible.ts";
import { whyNotExecutable } from "../lib/why-not-executable.ts";
import { sifRootOffset } from "./images/sif.ts";

/** How `stage.c` mounts an image that is a file: the program that serves it, and its options. */
export type SifMount = { program: string; options: string };

const MEND =
  "Install squashfuse 0.5 or newer, or leave image_mount_bytes out: then images are unpacked.";

/**
 * Null for an image that is a folder.
 * @throws ServiceError `sandbox_unavailable` for a SIF where nothing mounts it, `image_invalid`
 */
export async function sifMount(image: string, apptainer: string): Promise<SifMount | null> {
  if ((await stat(image)).isDirectory()) return null;
  const program = findSquashfuse(apptainer);
  const why = program === null ? "which this node lacks" : whyUnusable(program);
  if (program === null || why !== null) {
    const what = `the image ${image} is mounted by squashfuse_ll, ${why}`;
    throw new ServiceError("sandbox_unavailable", what, { mend: MEND });
  }
  const [uid, gid] = [process.geteuid?.() ?? 0, process.getegid?.() ?? 0];
  // Of another owner the sandbox could change none of its files, though they are under a layer of its own.
  const owner = `uid=${uid},gid=${gid}`;
  return { program, options: `offset=${await sifRootOffset(image)},${owner}` };
}

/** Why no SIF can be mounted here, as far as can be seen without a try; null: it may well be. */
export function whyNoSifMount(apptainer: string): string | null {
  const program = findSquashfuse(apptainer);
  if (program === null) return "there is no squashfuse_ll";
  const why = whyUnusable(program);
  if (why !== null) return `of squashfuse_ll ${why}`;
  const opens = isAccessible("/dev/fuse", constants.R_OK | constants.W_OK);
  return opens ? null : "/dev/fuse can't be opened";
}

/** Apptainer brings its own in some packages; only this variant takes an owner and a mount of ours. */
function findSquashfuse(apptainer: string): string | null {
  const name = "squashfuse_ll";
  const program = Bun.which(apptainer);
  const beside = program === null ? [] : [dirname(program)];
  const helpers = beside.flatMap((bin) => [
    bin,
    join(bin, "../libexec/apptainer/bin"),
    join(bin, "../libexec/singularity/bin"),
  ]);
  const found = [...helpers.map((folder) => join(folder, name)), Bun.which(name) ?? ""];
  const there = found.filter((path) => existsSync(path));
  return there.find((path) => whyNotExecutable(path) === null) ?? there[0] ?? null;
}

function whyUnusable(program: string): string | null {
  const why = whyNotExecutable(program);
  return why === null ? null : `${program} ${why}`;
}

import { existsSync } from "node:fs";
import type { Config } from "../config/settings.ts";
import { ServiceError } from "../errors.ts";
import type { WorkerSettings } from "../pipeline/messages.ts";
import { Images } from "../sandbox/images/images.ts";
import { readName } from "../sandbox/images/names.ts";
import { parseReference } from "../sandbox/images/reference.ts";
import { findProgram } from "../sandbox/programs.ts";
import type { MissingPart } from "../server/parts.ts";

/** What sandboxes lack now, by a few system calls: also what was there when the service started and has gone since. */
export function missingParts(config: Config, settings: WorkerSettings): MissingPart[] {
  const { driver } = config;
  if (driver === "none" || driver === "host") return [];
  const mend = "install it again, or start the service with --driver none";
  const name = driver === "bubblewrap" ? settings.bwrap : settings.apptainer;
  const looks: [MissingPart["what"], () => void][] = [
    ["driver", () => void findProgram({ name, mend })],
    ["image", () => requireImage(config, settings)],
  ];
  return looks.flatMap(([what, look]) => missing(what, look) ?? []);
}

function missing(what: MissingPart["what"], look: () => void): MissingPart | null {
  try {
    look();
    return null;
  } catch (error) {
    const { message, mend = "`rolloutd doctor` tells more" } = error as ServiceError;
    return { what, why: message, mend };
  }
}

function requireImage(config: Config, settings: WorkerSettings): void {
  const { defaultImage } = settings;
  if (defaultImage === null) {
    if (config.task_images !== undefined) return;
    const mend = "start the service with --image or --task-images";
    const why = "there is no default image: rollouts and rows have to name their own";
    throw new ServiceError("image_not_found", why, { mend });
  }
  const reference = parseReference(defaultImage);
  if (reference.kind === "name") {
    readName(new Images(settings.images).cache.folder, reference.name);
    return;
  }
  if (reference.kind === "registry" || existsSync(reference.path)) return;
  const mend = "put it back, or start the service with another --image";
  throw new ServiceError("image_not_found", `there is no image at ${reference.path}`, { mend });
}

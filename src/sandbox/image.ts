import { stat } from "node:fs/promises";
import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { sifRootOffset } from "./images/sif.ts";

/** @throws ServiceError `image_not_found` or `image_invalid`, which name the image. */
export async function checkImage(image: string): Promise<void> {
  const found = await stat(image).catch(() => null);
  if (found === null) throw new ServiceError("image_not_found", `there is no image at ${image}`);
  if (found.isFile()) {
    await sifRootOffset(image);
    return;
  }
  const usable = await Promise.all([exists(join(image, "usr")), exists(join(image, "bin"))]);
  if (usable.includes(false)) {
    const what = `the image ${image} is not a root file system: it has no usr or bin`;
    throw new ServiceError("image_invalid", what);
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}

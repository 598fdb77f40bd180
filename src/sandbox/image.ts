import { constants } from "node:fs";
import { lstat, stat } from "node:fs/promises";
import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { isAccessible } from "../lib/is-accessible.ts";
import { sifRootOffset } from "./images/sif.ts";

/** What any command in a sandbox needs: folders to search, and programs to run. */
const FOLDERS = ["", "usr", "bin", "usr/bin", "usr/lib", "lib", "lib64", "etc"];
const PROGRAMS = ["bin/sh", "bin/bash"];

/** @throws ServiceError `image_not_found` or `image_invalid`, which name the image. */
export async function checkImage(image: string): Promise<void> {
  const found = await stat(image).catch((error: NodeJS.ErrnoException) => error);
  if (found instanceof Error) {
    if (found.code === "EACCES") throw unreadable(image, image);
    throw new ServiceError("image_not_found", `there is no image at ${image}`);
  }
  if (found.isFile()) {
    await sifRootOffset(image);
    return;
  }
  await requireReadable(image);
  const usable = await Promise.all([exists(join(image, "usr")), exists(join(image, "bin"))]);
  if (usable.includes(false)) {
    const what = `the image ${image} is not a root file system: it has no usr or bin`;
    throw new ServiceError("image_invalid", what);
  }
}

/** @throws ServiceError `image_invalid` for a folder of which this user can't use what every sandbox needs */
async function requireReadable(image: string): Promise<void> {
  const { R_OK, X_OK } = constants;
  for (const name of [...FOLDERS, ...PROGRAMS]) {
    const path = join(image, name);
    const found = await stat(path).catch(() => null);
    // A link of the image's is followed there, not on the node.
    if (found === null || (name !== "" && (await isLink(path)))) continue;
    if (!isAccessible(path, found.isDirectory() ? R_OK | X_OK : X_OK)) {
      throw unreadable(image, path);
    }
  }
}

async function isLink(path: string): Promise<boolean> {
  return (await lstat(path)).isSymbolicLink();
}

function unreadable(image: string, path: string): ServiceError {
  const what = `the image ${image} can't be used by this user (uid ${process.geteuid?.()}): ${path} belongs to somebody else, who lets others not in`;
  return new ServiceError("image_invalid", what, { mend: OWN_COPY });
}

const OWN_COPY =
  "Have its owner open it (chmod -R a+rX), or make a SIF or tar of it, and add that: `rolloutd images add FILE`.";

/**
 * Adds to what an image was found to lack that its files are another user's, which is the reason where programs want to
 * change them: in a sandbox they belong to nobody.
 */
export async function explainOwner(error: unknown, image: string): Promise<unknown> {
  if (!(error instanceof ServiceError) || error.code !== "image_invalid") return error;
  const found = await stat(image).catch(() => null);
  if (!found?.isDirectory() || found.uid === process.geteuid?.()) return error;
  const why = `the files of ${image} belong to another user (uid ${found.uid}), so that nothing in a sandbox can change them`;
  const mend = `use a copy of your own: \`rolloutd images add ${image}\`, and the name that it prints as the image`;
  return new ServiceError(error.code, `${error.message}; ${why}`, { mend, cause: error });
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}

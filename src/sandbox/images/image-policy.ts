import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { ServiceError } from "../../errors.ts";
import { cannotRead } from "./file-digest.ts";
import { parseReference, type Reference } from "./reference.ts";
import { parseImageName } from "./registry/image-name.ts";
import { parseRegistries, type Registry, registryOf } from "./registry/registries.ts";

type LocalReference = Extract<Reference, { path: string }>;

/** What rows and requests may name as an image besides names of `rolloutd images`. */
export type ImagePolicy = {
  /** Images that the operator has named, as the settings write them. */
  named: readonly string[];
  /** Folders below which paths may be named. Null: anywhere, for the operator's own command line. */
  folders: readonly string[] | null;
  registries: readonly Registry[];
};

/**
 * A row must reach no file and no address that the operator has not allowed.
 *
 * @throws ServiceError `invalid_field`, `address_forbidden`, `image_invalid`
 */
export function requireAllowed(image: string, policy: ImagePolicy): void {
  const reference = parseReference(image);
  if (reference.kind === "name" || policy.named.includes(image)) return;
  if (reference.kind === "registry") {
    registryOf(parseImageName(reference.uri), policy.registries);
    return;
  }
  requireBelow(image, real(reference.path) ?? resolve(reference.path), policy);
}

/**
 * An allowed image by where its path leads now. Who reads it by that path reads what was judged, wherever a link on the
 * way leads meanwhile.
 *
 * @throws ServiceError as `requireAllowed` does, and `image_not_found`
 */
export function pinnedReference(
  reference: LocalReference,
  image: string,
  policy: ImagePolicy,
): LocalReference {
  requireAllowed(image, policy);
  let path: string;
  try {
    path = realpathSync(reference.path);
  } catch (error) {
    throw cannotRead(reference.path, error);
  }
  if (!policy.named.includes(image)) requireBelow(image, path, policy);
  return { ...reference, path };
}

/** @param end what the image's path leads to; that nothing is there is told later */
function requireBelow(image: string, end: string, { folders }: ImagePolicy): void {
  if (folders === null || folders.some((folder) => isBelow(folder, end))) return;
  const message = `the image ${image} lies in no folder that jobs may name`;
  const mend =
    "the operator allows its folder with --image-dirs, or names it with `rolloutd images add`";
  throw new ServiceError("invalid_field", message, { field: "image", mend });
}

/** The same policy where the operator names `image` himself, with its registry. @throws ServiceError `image_invalid` */
export function allowing(image: string, policy: ImagePolicy): ImagePolicy {
  const named = [...policy.named, image];
  const reference = parseReference(image);
  if (reference.kind !== "registry") return { ...policy, named };
  const { host } = parseImageName(reference.uri);
  if (policy.registries.some((each) => each.host === host)) return { ...policy, named };
  return { ...policy, named, registries: [...policy.registries, ...parseRegistries(host)] };
}

function isBelow(folder: string, end: string): boolean {
  return end.startsWith(`${real(folder) ?? resolve(folder)}/`.replace(/\/+$/, "/"));
}

function real(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

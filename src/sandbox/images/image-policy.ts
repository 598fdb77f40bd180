import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { ServiceError } from "../../errors.ts";
import { parseReference } from "./reference.ts";
import { parseImageName } from "./registry/image-name.ts";
import { parseRegistries, type Registry, registryOf } from "./registry/registries.ts";

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
  const { folders } = policy;
  if (folders === null || folders.some((folder) => isBelow(folder, reference.path))) return;
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

/** By what the path leads to. One that leads nowhere is where it is written; that it is not there is told later. */
function isBelow(folder: string, path: string): boolean {
  const top = `${real(folder) ?? resolve(folder)}/`.replace(/\/+$/, "/");
  const end = real(path);
  return end === null ? resolve(path).startsWith(top) : end.startsWith(top);
}

function real(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

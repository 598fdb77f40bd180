import { isAbsolute } from "node:path";
import { ServiceError } from "../../errors.ts";

/** What a job, a setting or the command line may name as an image. */
export type Reference =
  | { kind: "name"; name: string }
  /** A SIF, a tar of a root file system, or its folder. */
  | { kind: "path"; path: string }
  | { kind: "archive"; format: "docker-archive" | "oci-archive"; path: string }
  | { kind: "registry"; uri: string };

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const ARCHIVE = /^(docker-archive|oci-archive):(\/.+)$/s;
const REGISTRY = /^(docker|oras):\/\/[^\s/-][^\s]*$/;

/** @throws ServiceError `image_invalid` */
export function parseReference(image: string): Reference {
  if (isAbsolute(image)) return { kind: "path", path: image };
  const [, format, path] = ARCHIVE.exec(image) ?? [];
  if (format && path) return { kind: "archive", format: format as "oci-archive", path };
  if (REGISTRY.test(image)) return { kind: "registry", uri: image };
  if (NAME.test(image)) return { kind: "name", name: image };
  throw new ServiceError("image_invalid", `"${image}" names no image`, {
    mend: "use a name, an absolute path, docker-archive:/PATH, oci-archive:/PATH or docker://…",
  });
}

/** @throws ServiceError `invalid_field` */
export function checkName(name: string): void {
  if (NAME.test(name)) return;
  const message = `"${name}" can't name an image: 1-128 of A-Z a-z 0-9 . _ -`;
  throw new ServiceError("invalid_field", message, { field: "name" });
}

/** `docker://python:3.12-slim` is `python-3.12-slim`, `/shared/math.sif` is `math`. */
export function defaultName(image: string): string {
  const last = image.replace(/\/+$/, "").split("/").at(-1) ?? "";
  const stem = last.replace(/\.(sif|t[agx]z|tzst|tar(\.(gz|zst|xz))?)$/, "");
  return stem
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, 128);
}

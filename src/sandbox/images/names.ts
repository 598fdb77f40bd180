import { readdirSync, rmSync } from "node:fs";
import { ServiceError } from "../../errors.ts";
import { type CacheFolder, readJson, writeJson } from "./cache-folder.ts";
import { checkName } from "./reference.ts";

/** A name stands for one content, and remembers where that came from, in case it has to be made again. */
export type NamedImage = { name: string; digest: string; image: string };

export function readName(folder: CacheFolder, name: string): NamedImage {
  const named = readJson<NamedImage>(folder.name(name));
  if (named !== null) return named;
  throw new ServiceError("image_not_found", `there is no image named ${name}`, {
    mend: "`rolloutd images list` shows what there is, `rolloutd images add` adds one",
  });
}

/** @throws ServiceError `invalid_field` */
export function writeName(folder: CacheFolder, named: NamedImage): void {
  checkName(named.name);
  writeJson(folder.name(named.name), named);
}

export function removeName(folder: CacheFolder, name: string): void {
  rmSync(folder.name(name));
}

export function listNames(folder: CacheFolder): NamedImage[] {
  // A file that begins with a dot is being written.
  const names = readdirSync(folder.names).filter((name) => !name.startsWith("."));
  return names.sort().flatMap((name) => readJson<NamedImage>(folder.name(name)) ?? []);
}

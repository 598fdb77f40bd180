import { constants, existsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { isAccessible } from "../lib/is-accessible.ts";
import { UsageError } from "./flags.ts";

/**
 * The file for results that take hours, looked at before they do. Missing folders will be made.
 * @throws UsageError
 */
export function outFile(path: string): string {
  const file = resolve(path);
  let at = file;
  while (!existsSync(at)) at = dirname(at);
  const isFolder = statSync(at).isDirectory();
  if (isFolder !== (at === file) && isAccessible(at, constants.W_OK)) return path;
  throw new UsageError(`the results can't be written to ${file}; name another file by --out`);
}

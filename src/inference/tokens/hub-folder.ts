import { existsSync, readFileSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { ServiceError } from "../../errors.ts";

/**
 * The folder of a model that is named by a path, or by its name on the Hugging Face hub where that is in this
 * node's cache. Nothing is downloaded.
 *
 * @throws ServiceError `model_folder_invalid`
 */
export function hubFolder(name: string, env: Record<string, string | undefined>): string {
  if (isAbsolute(name)) {
    // One name per folder, or each way to spell it would be loaded by itself and kept.
    if (existsSync(name)) return realpathSync(name);
    throw missing(name, "there is no such folder on this node");
  }
  const cache = env.HF_HUB_CACHE ?? join(env.HF_HOME ?? defaultHome(env), "hub");
  const model = join(cache, `models--${name.replaceAll("/", "--")}`);
  // A name is never a way out of the cache.
  if (!/^[\w.-]+(\/[\w.-]+)?$/.test(name) || name.includes("..")) {
    throw missing(name, "that is neither an absolute path nor a model's name");
  }
  const main = join(model, "refs/main");
  if (!existsSync(main)) throw missing(name, `${cache} does not have it`);
  const snapshot = join(model, "snapshots", readFileSync(main, "utf8").trim());
  if (existsSync(snapshot)) return snapshot;
  throw missing(name, `${snapshot} is missing`);
}

function defaultHome(env: Record<string, string | undefined>): string {
  return join(env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "huggingface");
}

function missing(name: string, what: string): ServiceError {
  return new ServiceError("model_folder_invalid", `the model folder ${name}: ${what}`, {
    mend: "name the folder by its absolute path, or download the model there first",
  });
}

import type { Config } from "../config/settings.ts";
import { ServiceError } from "../errors.ts";
import { createLog } from "../telemetry/log.ts";
import { ApiClient } from "./api-client.ts";
import type { CliContext } from "./command.ts";
import { requireDriver } from "./preflight.ts";
import { RunFolder, removeLeftFolders } from "./run-folder.ts";
import { startService } from "./service.ts";
import { configFrom } from "./settings.ts";

/** Flags of settings that make sense for the server that `run` starts itself. */
export const OWN_SERVER = [
  "backend",
  "model",
  "model-dir",
  "api-key-env",
  "engine",
  "image",
  "apptainer",
  "tasks",
] as const;

/** The settings of the service that `run` starts itself. What is for a service of many users has no part in it. */
export function ownConfig(values: Record<string, unknown>): Config {
  const given = [...OWN_SERVER, "config"].map((name) => [name, values[name]]);
  const config = configFrom(Object.fromEntries(given));
  const door = { host: "127.0.0.1", port: 0, socket: undefined, token_file: undefined };
  const tls = { tls_cert: undefined, tls_key: undefined, allow_anonymous: false };
  return { ...config, ...door, ...tls, recover: false, log_level: "warn" };
}

/** Rows that need no sandbox run on a node that makes none; others are refused before the first rollout, with the reason. */
async function driverFor(config: Config): Promise<{ driver: Config["driver"]; why?: string }> {
  try {
    await requireDriver(config);
    return { driver: config.driver };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const isNamed = config.apptainer !== undefined || config.driver !== "apptainer";
    // The start refuses what was named.
    return isNamed ? { driver: config.driver } : { driver: "none", why: error.message };
  }
}

/**
 * The named server, or one of our own in a folder that goes away with it.
 * @throws UsageError, and whatever keeps a service from starting
 */
export async function serverFor(where: string | Config, context: CliContext) {
  if (typeof where === "string") {
    return { client: new ApiClient(where), [Symbol.asyncDispose]: async () => {} };
  }
  await using begun = new AsyncDisposableStack();
  await removeLeftFolders();
  const { path: data_dir } = begun.use(new RunFolder());
  const { driver, why } = await driverFor(where);
  const config = { ...where, data_dir, driver };
  const service = await startService(config, createLog(config.log_level), context, why);
  begun.defer(async () => void (await service.shutDown(0, Promise.resolve())));
  const kept = begun.move();
  return {
    client: new ApiClient(service.socket),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

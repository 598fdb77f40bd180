import { createLog } from "../telemetry/log.ts";
import { ApiClient } from "./api-client.ts";
import type { CliContext } from "./command.ts";
import { RunFolder, removeLeftFolders } from "./run-folder.ts";
import { startService } from "./service.ts";
import { configFrom } from "./settings.ts";

/** Flags of settings that make sense for the server that `run` starts itself. */
const OWN_SERVER = [
  "backend",
  "model",
  "model-dir",
  "api-key-env",
  "engine",
  "image",
  "image-dirs",
  "registries",
  "apptainer",
] as const;

type Values = { server?: string | undefined } & Record<string, unknown>;

/**
 * The named server, or one of our own in a folder that goes away with it.
 * @throws UsageError, and whatever keeps a service from starting
 */
export async function serverFor(values: Values, context: CliContext) {
  if (values.server) {
    return { client: new ApiClient(values.server), [Symbol.asyncDispose]: async () => {} };
  }
  await using begun = new AsyncDisposableStack();
  await removeLeftFolders();
  const { path: dataDir } = begun.use(new RunFolder());
  const given = [...OWN_SERVER, "config"].map((name) => [name, values[name]]);
  const own = { "data-dir": dataDir, port: "0", "log-level": "warn" };
  const config = configFrom({ ...Object.fromEntries(given), ...own });
  const service = await startService(config, createLog(config.log_level), context);
  begun.defer(async () => void (await service.shutDown(0, Promise.resolve())));
  const kept = begun.move();
  return {
    client: new ApiClient(service.socket),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

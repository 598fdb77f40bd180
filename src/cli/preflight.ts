import { accessSync, constants, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { createSecureContext } from "node:tls";
import { type Config, flagOf, type SettingName, variableOf } from "../config/settings.ts";
import { ServiceError } from "../errors.ts";
import { loadTokenModel } from "../inference/tokens/token-model.ts";
import type { Network } from "../lib/network.ts";
import { makePrivateFolder } from "../lib/private-folder.ts";
import { probeApptainer } from "../sandbox/apptainer.ts";
import { probeBubblewrap } from "../sandbox/bubblewrap.ts";
import { checkImage } from "../sandbox/image.ts";
import { Images } from "../sandbox/images/images.ts";
import { readName } from "../sandbox/images/names.ts";
import { parseReference } from "../sandbox/images/reference.ts";
import { findSource } from "../sandbox/images/source.ts";
import { findProgram } from "../sandbox/programs.ts";
import { checkAddress } from "../server/door.ts";
import { tryAddress } from "../server/listen.ts";
import { TokenFile } from "../server/tokens.ts";
import { checkSocketPath } from "../server/unix-socket.ts";
import { prepareFolder } from "../store/database.ts";
import { loadTaskModules } from "../tasks/load-modules.ts";
import { TASK_KINDS } from "../tasks/registry.ts";
import { backendKeys } from "./backend-keys.ts";
import { type ExaminedBackend, examineBackend } from "./backend-service.ts";
import { callbackService } from "./callback-service.ts";
import { UsageError } from "./flags.ts";
import { imageArgument } from "./image-argument.ts";
import { mcpSettings } from "./mcp-settings.ts";
import { taskSettings } from "./task-settings.ts";
import { readPem, tcpAddress } from "./tcp-address.ts";
import { findApptainer, imageSettings } from "./worker-settings.ts";

type Env = Record<string, string | undefined>;

/** Looks at what a setting names. @throws ServiceError where it is absent or unusable */
type Check = (value: string, config: Config, env: Env) => unknown;

const BACKEND_PROBE_MS = 30_000;

/**
 * What each setting names that a service has to find, in the order in which it is looked at: what is cheap first, what
 * depends on another behind it. A setting that names nothing outside of the service is in `NAMELESS`.
 */
export const CHECKS: Partial<Record<SettingName, Check>> = {
  token_file: (path) => new TokenFile(path),
  tls_cert: (path) => readPem("tls_cert", path),
  tls_key: requireTls,
  callback_secret_file: (_path, config, env) => callbackService(config, env),
  host: requireAddress,
  data_dir: prepareFolder,
  socket: (path) => checkSocketPath(path),
  rows_dir: requireFolder,
  tasks: (_paths, config) => loadTaskModules(taskSettings(config).modules),
  mcp_servers: requireToolServers,
  image_cache: requireImageCache,
  apptainer: (name) => findProgram({ name, mend: PROGRAM_MEND }),
  bwrap: (name) => findProgram({ name, mend: PROGRAM_MEND }),
  driver: (_name, config) => requireDriver(config),
  image: requireImage,
  task_images: (_text, config) => requireTaskImages(config),
  model_dir: (path) => loadTokenModel(resolve(path)),
  reward_servers: (_urls, config) => taskSettings(config),
  task_urls: (_urls, config) => taskSettings(config),
  gym_servers: (_servers, config) => taskSettings(config),
  task_envs: requireVariables,
  api_key_env: requireVariables,
  backend_key_envs: requireVariables,
  judge_api_key_env: requireVariables,
  search_api_key_env: requireVariables,
};

/** Texts that name nothing which could be absent, or what only a call finds out. */
export const NAMELESS: readonly SettingName[] = [
  ...(["backend", "model", "engine", "backend_networks", "balancing"] as const),
  ...(["judge_url", "judge_model", "search_url", "agent_reminder", "agent_stuck"] as const),
  ...(["callback_networks", "log_level", "min_isolation", "sandbox_writable"] as const),
  ...(["gym_status_mode", "task_network"] as const),
];

const PROGRAM_MEND =
  "correct it, or leave it out to use the one on PATH; --driver none serves without sandboxes";

/** Settings that do nothing without another one. */
const NEEDS: [name: SettingName, needed: SettingName][] = [
  ["judge_model", "judge_url"],
  ["judge_api_key_env", "judge_url"],
  ["search_api_key_env", "search_url"],
  ["tls_key", "tls_cert"],
  ["tls_cert", "tls_key"],
  ["judge_url", "judge_model"],
  ["model", "backend"],
  ["model_dir", "backend"],
];

/**
 * Looks at everything that the operator names before the service touches its database.
 *
 * @returns the inference server that the settings name, as it answered
 * @throws UsageError with flag, value and what to do
 */
export async function preflight(config: Config, env: Env): Promise<ExaminedBackend | null> {
  requireNeeded(config, env);
  for (const name of Object.keys(CHECKS) as SettingName[]) await look(name, config, env);
  const { backend: url, model, model_dir, api_key_env, engine } = config;
  if (url === undefined) return null;
  const networks = config.backend_networks.split(",") as Network[];
  const request = { url, model, model_dir, api_key_env, engine };
  const signal = AbortSignal.timeout(BACKEND_PROBE_MS);
  return await asUsage(config, env, "backend", () =>
    examineBackend(request, backendKeys(config, env), networks, signal),
  );
}

/** @throws UsageError */
export async function look(name: SettingName, config: Config, env: Env): Promise<void> {
  const value = config[name];
  const check = CHECKS[name];
  if (check === undefined || value === undefined || isIdle(name, config)) return;
  await asUsage(config, env, name, () => check(String(value), config, env));
}

function requireNeeded(config: Config, env: Env): void {
  for (const [name, needed] of NEEDS) {
    if (config[name] === undefined || config[needed] !== undefined) continue;
    const why = `has no effect without ${flagOf(needed)}; give both, or neither`;
    throw refusal(config, env, name, why);
  }
}

/** Why no sandbox can be started for want of a program. @throws ServiceError `sandbox_unavailable` */
export async function requireDriver(config: Config): Promise<void> {
  const { driver, apptainer, bwrap } = config;
  if (driver === "host" && !config.allow_host_driver) {
    const mend = "use driver=apptainer; tests may set --allow-host-driver";
    throw new ServiceError("sandbox_unavailable", "driver=host isolates nothing", { mend });
  }
  try {
    if (driver === "bubblewrap") await probeBubblewrap(bwrap ?? "bwrap");
    if (driver === "apptainer") {
      await probeApptainer(findApptainer(apptainer));
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const without = "--driver none (ROLLOUTD_DRIVER=none) serves without sandboxes";
    const mend = `${error.mend ?? "install it"} Or: ${without}; \`rolloutd doctor\` tells more`;
    throw new ServiceError(error.code, error.message, { mend, cause: error });
  }
}

/** Images are of no use where no sandbox is made. */
function isIdle(name: SettingName, { driver }: Config): boolean {
  return name === "image_cache" && driver === "none";
}

async function requireImage(reference: string, config: Config): Promise<void> {
  const named = parseReference(imageArgument(reference, "image"));
  if (named.kind === "name") {
    readName(new Images(imageSettings(config)).cache.folder, named.name);
    return;
  }
  const { kind, location } = await findSource(named);
  if (kind === "folder" || kind === "sif") await checkImage(location);
  if (kind !== "folder" && kind !== "registry") accessSync(location, constants.R_OK);
}

async function requireTaskImages(config: Config): Promise<void> {
  for (const [kind, image] of Object.entries(taskSettings(config).images)) {
    if (!TASK_KINDS.some(({ name }) => name === kind)) {
      const names = TASK_KINDS.map(({ name }) => name).join(", ");
      throw new ServiceError("invalid_field", `there is no task kind "${kind}"`, {
        mend: `use one of: ${names}`,
      });
    }
    if (!image.includes("{")) await requireImage(image, config);
  }
}

function requireToolServers(path: string): void {
  for (const { address, taskKinds } of Object.values(mcpSettings(path))) {
    if ("command" in address) {
      const mend = `correct \`command\` of the server ${address.name} in ${path}`;
      findProgram({ name: address.command[0] ?? "", mend });
    }
    const unknown = taskKinds.find((kind) => !TASK_KINDS.some(({ name }) => name === kind));
    if (unknown === undefined) continue;
    const message = `the server ${address.name} is for the task kind "${unknown}", which is not there`;
    throw new ServiceError("invalid_field", message, { mend: `correct \`task_kinds\` in ${path}` });
  }
}

function requireImageCache(path: string): void {
  const problem = makePrivateFolder(path);
  if (problem === null) return;
  const { why, mend = "choose a folder on a local disk", cause } = problem;
  throw new ServiceError("image_cache_unusable", `the folder ${why}`, { mend, cause });
}

function requireFolder(path: string): void {
  const mend = "name a folder that this user can read";
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found?.isDirectory()) {
    const why = found ? "it is no folder" : "there is no such folder";
    throw new ServiceError("invalid_field", why, { mend });
  }
  accessSync(path, constants.R_OK | constants.X_OK);
}

function requireTls(path: string, config: Config): void {
  const key = readPem("tls_key", path);
  const cert = readPem("tls_cert", config.tls_cert ?? "");
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    const mend = "give the private key of --tls-cert, both as PEM";
    const why = `certificate and key can't be used together: ${(cause as Error).message}`;
    throw new ServiceError("invalid_field", why, { mend, cause });
  }
}

async function requireAddress(_host: string, config: Config): Promise<void> {
  const address = tcpAddress(config);
  checkAddress(address);
  await tryAddress(address);
}

function requireVariables(names: string, _config: Config, env: Env): void {
  const unset = names.split(",").find((name) => !env[name]);
  if (unset === undefined) return;
  const mend = `set it in the environment of rolloutd, or leave the name out`;
  throw new ServiceError("invalid_field", `the variable ${unset} is not set`, { mend });
}

/** @throws UsageError for what the operator can mend, and for what the operating system says of it */
async function asUsage<T>(
  config: Config,
  env: Env,
  name: SettingName,
  look: () => T | Promise<T>,
): Promise<T> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof ServiceError) {
      const mend = error.mend ? `; ${error.mend}` : "";
      // One look may be at several settings: host and port are.
      const { field = name } = error;
      const named = Object.hasOwn(config, field) ? (field as SettingName) : name;
      throw refusal(config, env, named, `${error.message}${mend}`);
    }
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw refusal(config, env, name, `${message}; check it, and that this user may use it`);
  }
}

function refusal(config: Config, env: Env, name: SettingName, why: string): UsageError {
  const value = String(config[name]);
  const variable = variableOf(name);
  const given = env[variable];
  const from = given !== undefined && [given, resolve(given)].includes(value) ? variable : null;
  const [plain, ...rest] = why.split(": ");
  // Some begin with the name of the setting themselves.
  const told = plain === name || plain === flagOf(name) ? rest.join(": ") : why;
  return new UsageError(`${from ?? flagOf(name)} ${value}: ${told}`);
}

/** The service's own socket; by default in its data folder. */
export function socketOf({ socket, data_dir }: Config): string {
  return socket ?? join(data_dir, "rolloutd.sock");
}

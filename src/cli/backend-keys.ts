import type { Config } from "../config/settings.ts";

type Keys = Pick<Config, "api_key_env" | "backend_key_envs">;

/**
 * The variables that may be sent to an inference server as its key: those that the operator names. Who adds one
 * must not have the service's other secrets sent to it, and never its own.
 */
export function backendKeys(
  { api_key_env, backend_key_envs = "" }: Keys,
  env: Record<string, string | undefined>,
): Record<string, string | undefined> {
  const named = [api_key_env ?? "", ...backend_key_envs.split(",")];
  const names = named.filter((name) => name !== "" && !name.startsWith("ROLLOUTD_"));
  return Object.fromEntries(names.map((name) => [name, env[name]]));
}

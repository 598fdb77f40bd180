import { ServiceError } from "../errors.ts";
import { type Config, flagOf, SETTINGS, type SettingName, variableOf } from "./settings.ts";

/** Where a value came from, for the error that refuses it. */
type Source = { describe(name: string): string; values: Record<string, unknown> };

type Inputs = {
  /** Parsed configuration file. */
  file?: Record<string, unknown> | undefined;
  env: Record<string, string | undefined>;
  /** By setting name. */
  flags: Record<string, unknown>;
};

/** File < environment < flags. @throws ServiceError `invalid_field`, `unknown_field` */
export function loadConfig({ file = {}, env, flags }: Inputs): Config {
  refuseUnknown(file);
  const names = Object.keys(SETTINGS) as SettingName[];
  const fromEnv = Object.fromEntries(names.map((name) => [name, env[variableOf(name)]]));
  const sources: Source[] = [
    { describe: flagOf, values: flags },
    { describe: variableOf, values: fromEnv },
    { describe: (name) => `${name} in the configuration file`, values: file },
  ];
  const config: Record<string, unknown> = {};
  for (const name of names) config[name] = resolve(name, sources);
  return config as Config;
}

function resolve(name: SettingName, sources: Source[]): unknown {
  const { schema, fallback } = SETTINGS[name];
  for (const { describe, values } of sources) {
    if (values[name] === undefined) continue;
    const parsed = schema.safeParse(values[name]);
    if (parsed.success) return parsed.data;
    const why = parsed.error.issues[0]?.message ?? "invalid";
    throw new ServiceError("invalid_field", `${describe(name)}: ${why}`, { field: name });
  }
  return fallback;
}

function refuseUnknown(file: Record<string, unknown>): void {
  for (const name of Object.keys(file)) {
    if (Object.hasOwn(SETTINGS, name)) continue;
    throw new ServiceError("unknown_field", `the configuration file has an unknown key: ${name}`, {
      field: name,
      mend: "`rolloutd serve --help` lists the settings",
    });
  }
}

import type { z } from "zod";
import { ServiceError } from "../errors.ts";
import { nearest } from "../lib/nearest.ts";
import { type Config, flagOf, SETTINGS, type SettingName, variableOf } from "./settings.ts";

/** Variables of ours that are no settings: of commands, of the scripts, and of the service's secrets. */
const OTHERS = new Set(
  ["SERVER", "TOKEN", "CONFIG", "CACHE", "BASE_IMAGE", "CALLBACK_SECRET"].map(variableOf),
);

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
    const why = whyNot(parsed.error.issues[0]);
    const message = `${describe(name)} ${shown(values[name])}: ${why}`;
    throw new ServiceError("invalid_field", message, { field: name });
  }
  return fallback;
}

function whyNot(issue: z.core.$ZodIssue | undefined): string {
  if (issue?.code === "invalid_value") return `must be one of ${issue.values.join(", ")}`;
  return issue?.message ?? "can't be";
}

/** As a person would write it; long texts are cut. */
function shown(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  return /^\S+$/.test(text) ? text.slice(0, 200) : JSON.stringify(text.slice(0, 200));
}

/**
 * Variables that were probably meant to be a setting's, with its name: who misspells one would never hear of it. Others
 * that begin like ours may be anyone's.
 */
export function misspelt(env: Inputs["env"]): [name: string, meant: string][] {
  const prefix = variableOf("");
  const known = Object.keys(SETTINGS);
  const taken = new Set([...known.map(variableOf), ...OTHERS]);
  return Object.keys(env).flatMap((name): [string, string][] => {
    if (!name.startsWith(prefix) || taken.has(name)) return [];
    const meant = nearest(name.slice(prefix.length), known);
    return meant === null ? [] : [[name, variableOf(meant)]];
  });
}

function refuseUnknown(file: Record<string, unknown>): void {
  for (const name of Object.keys(file)) {
    if (Object.hasOwn(SETTINGS, name)) continue;
    const meant = nearest(name, Object.keys(SETTINGS));
    throw new ServiceError("unknown_field", `the configuration file has an unknown key: ${name}`, {
      field: name,
      mend: meant ? `did you mean ${meant}?` : "`rolloutd serve --help` lists the settings",
    });
  }
}

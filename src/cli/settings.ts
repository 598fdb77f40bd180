import { readFileSync } from "node:fs";
import { z } from "zod";
import { loadConfig, misspelt } from "../config/config.ts";
import {
  type Config,
  flagOf,
  SECTIONS,
  SETTINGS,
  type SettingName,
  variableOf,
} from "../config/settings.ts";
import { ServiceError } from "../errors.ts";
import { UsageError } from "./flags.ts";

/** The settings as `parseArgs` options, so that every setting is also a flag. */
export function settingFlags(): Record<string, { type: "string" | "boolean" }> {
  const flags: Record<string, { type: "string" | "boolean" }> = { config: { type: "string" } };
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    const type = typeof SETTINGS[name].fallback === "boolean" ? "boolean" : "string";
    flags[flagOf(name).slice(2)] = { type };
  }
  return flags;
}

/** File < environment < flags. @throws UsageError where a setting is wrong, wherever it was set. */
export function configFrom(values: Record<string, unknown>): Config {
  try {
    return readConfig(values);
  } catch (error) {
    if (error instanceof ServiceError) {
      const mend = error.mend ? ` (${error.mend})` : "";
      throw new UsageError(error.message + mend, { cause: error });
    }
    throw error;
  }
}

function readConfig(values: Record<string, unknown>): Config {
  const names = Object.keys(SETTINGS) as SettingName[];
  const flags = Object.fromEntries(names.map((name) => [name, values[flagOf(name).slice(2)]]));
  for (const [variable, meant] of misspelt(process.env)) {
    process.stderr.write(`rolloutd: ${variable} is no setting; did you mean ${meant}?\n`);
  }
  const path = (values.config as string | undefined) ?? (process.env.ROLLOUTD_CONFIG || undefined);
  const file = path === undefined ? undefined : readConfigFile(path);
  return loadConfig({ file, env: process.env, flags });
}

/** Every setting on a line, by what they are about. */
export function settingsHelp(): string {
  const names = Object.keys(SETTINGS) as SettingName[];
  const width = Math.max(...names.map((name) => flagOf(name).length));
  const sections = Object.entries(SECTIONS).map(([title, section]) => {
    const lines = (Object.keys(section) as SettingName[]).map((name) => helpLine(name, width));
    return `${title}\n${lines.join("\n")}`;
  });
  const example: SettingName = "data_dir";
  return `\n${sections.join("\n\n")}

What is on by default has --no- before its name to switch it off.
Each setting is also an environment variable (${flagOf(example)}: ${variableOf(example)}) and a key of the
TOML file that --config names (${example}). Flags win over variables, variables over the file.
`;
}

function helpLine(name: SettingName, width: number): string {
  const { schema, doc, fallback } = SETTINGS[name];
  const choices = schema instanceof z.ZodEnum ? ` (${schema.options.join(", ")})` : "";
  const on = fallback === true ? "on" : fallback;
  const shown = on === undefined || on === false ? "" : ` [${on}]`;
  return `  ${flagOf(name).padEnd(width)}  ${doc}${choices}${shown}`;
}

/** The configuration file as JSON schema. */
export function configSchema(): Record<string, unknown> {
  const names = Object.keys(SETTINGS) as SettingName[];
  const properties = names.map((name) => {
    const { schema, fallback, doc } = SETTINGS[name];
    const { $schema: _, ...shape } = z.toJSONSchema(schema, { unrepresentable: "any" });
    return [
      name,
      { ...shape, description: doc, ...(fallback === undefined ? {} : { default: fallback }) },
    ];
  });
  return {
    type: "object",
    additionalProperties: false,
    properties: Object.fromEntries(properties),
  };
}

function readConfigFile(path: string): Record<string, unknown> {
  try {
    return Bun.TOML.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  } catch (error) {
    const message = `--config: the configuration file ${path} can't be read: ${(error as Error).message}`;
    throw new ServiceError("invalid_field", message, { field: "config" });
  }
}

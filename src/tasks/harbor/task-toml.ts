import { z } from "zod";

const seconds = z.number().positive().max(86_400);
const user = z.union([z.string(), z.int()]);
const env = z.record(z.string(), z.string());
const megabytes = z.number().positive();

const networkShape = {
  network_mode: z.enum(["no-network", "public", "allowlist"]).optional(),
  allowed_hosts: z.array(z.string()).optional(),
};

const healthcheckSchema = z.strictObject({
  command: z.string().min(1),
  interval_sec: z.number().min(0).default(5),
  timeout_sec: seconds.default(30),
  start_period_sec: z.number().min(0).default(0),
  start_interval_sec: z.number().min(0).default(5),
  retries: z.int().min(1).default(3),
});

const environmentSchema = z.strictObject({
  ...networkShape,
  docker_image: z.string().min(1).optional(),
  workdir: z.string().regex(/^\//, "must be an absolute path").optional(),
  env: env.default({}),
  healthcheck: healthcheckSchema.optional(),
  memory_mb: megabytes.optional(),
  storage_mb: megabytes.optional(),
  /** As older tasks say it: `2G`, `512M`. */
  memory: z.string().optional(),
  storage: z.string().optional(),
  allow_internet: z.boolean().optional(),
  cpus: z.number().optional(),
  gpus: z.number().optional(),
  gpu_types: z.array(z.string()).optional(),
  tpu: z.unknown().optional(),
  os: z.string().optional(),
  mcp_servers: z.array(z.unknown()).optional(),
  build_timeout_sec: z.number().optional(),
  skills_dir: z.string().optional(),
});

const artifactSchema = z.union([
  z.string().transform((source) => ({ source, exclude: [] as string[], service: undefined })),
  z.object({
    source: z.string().min(1),
    /** Where Harbor keeps it on the host: nothing here depends on it. */
    destination: z.string().optional(),
    exclude: z.array(z.string()).default([]),
    service: z.string().optional(),
  }),
]);

const verifierSchema = z.strictObject({
  ...networkShape,
  timeout_sec: seconds.default(600),
  env: env.default({}),
  user: user.optional(),
  environment_mode: z.enum(["shared", "separate"]).optional(),
  environment: environmentSchema.optional(),
  collect: z
    .array(
      z.strictObject({
        command: z.string().min(1),
        service: z.string().default("main"),
        timeout_sec: seconds.default(60),
        user: user.optional(),
      }),
    )
    .default([]),
});

const agentSchema = z.strictObject({
  ...networkShape,
  timeout_sec: seconds.optional(),
  user: user.optional(),
});

const stepSchema = z.strictObject({
  name: z.string().regex(/^(?!\.)[\w.-]+$/, "must be the plain name of a folder below steps/"),
  agent: agentSchema.prefault({}),
  verifier: verifierSchema.prefault({}),
  min_reward: z.union([z.number(), z.record(z.string(), z.number())]).optional(),
  healthcheck: healthcheckSchema.optional(),
  artifacts: z.array(artifactSchema).default([]),
});

/** Harbor's `task.toml`, schema 1.4. Source: `harbor/models/task/config.py` of the package `harbor` 0.25. */
const taskSchema = z.strictObject({
  schema_version: z.string().optional(),
  version: z.string().optional(),
  task: z.looseObject({ name: z.string().optional() }).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  source: z.string().optional(),
  artifacts: z.array(artifactSchema).default([]),
  agent: agentSchema.prefault({}),
  verifier: verifierSchema.prefault({}),
  environment: environmentSchema.prefault({}),
  solution: z.strictObject({ env: env.default({}) }).prefault({}),
  steps: z.array(stepSchema).optional(),
  multi_step_reward_strategy: z.enum(["mean", "final"]).default("mean"),
});

export type TaskToml = z.output<typeof taskSchema>;
export type Healthcheck = z.output<typeof healthcheckSchema>;
export type VerifierToml = z.output<typeof verifierSchema>;
export type EnvironmentToml = z.output<typeof environmentSchema>;
export type MinReward = z.output<typeof stepSchema>["min_reward"];

/** What `task.toml` says, and a warning for each key that nobody reads. */
export type ReadToml = { task: TaskToml; warnings: string[] } | { problem: string };

export function readTaskToml(text: string): ReadToml {
  let toml: unknown;
  try {
    toml = Bun.TOML.parse(text);
  } catch (error) {
    return { problem: `is not valid TOML: ${(error as Error).message}` };
  }
  const unknown = unknownKeys(toml);
  const warnings = unknown.map((path) => `task.toml: nothing reads ${path.join(".")}`);
  for (const path of unknown) remove(toml, path);
  const parsed = taskSchema.safeParse(toml);
  if (parsed.success) return { task: parsed.data, warnings };
  const issue = parsed.error.issues[0];
  return { problem: `${issue?.path.join(".")}: ${issue?.message}` };
}

function unknownKeys(toml: unknown): PropertyKey[][] {
  const { error } = taskSchema.safeParse(toml);
  return (error?.issues ?? []).flatMap((issue) =>
    issue.code === "unrecognized_keys" ? issue.keys.map((key) => [...issue.path, key]) : [],
  );
}

function remove(value: unknown, path: readonly PropertyKey[]): void {
  const [key, ...rest] = path as [PropertyKey, ...PropertyKey[]];
  const holder = value as Record<PropertyKey, unknown>;
  if (rest.length > 0) remove(holder[key], rest);
  else delete holder[key];
}

const UNITS: Record<string, number> = { G: 1024, M: 1, K: 1 / 1024 };

/** `2G` in megabytes; null where it is no size. */
export function megabytesOf(text: string): number | null {
  const [, number, unit = "M"] = /^\s*(\d+(?:\.\d+)?)\s*([GMK])i?B?\s*$/i.exec(text) ?? [];
  if (number === undefined) return null;
  return Number(number) * (UNITS[unit.toUpperCase()] ?? 1);
}

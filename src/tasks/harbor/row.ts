import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { parseRow } from "../parse-row.ts";

/** Base64 by path relative to the folder. */
const files = z.record(
  z.string().regex(/^(?!\/)(?!.*(^|\/)\.\.(\/|$)).+$/, "must be a path below the folder"),
  z.base64(),
);

const rowSchema = z.looseObject({
  instruction: z.string().min(1),
  /** The text of `task.toml`. */
  task_toml: z.string(),
  tests: files,
  solution: files.nullish(),
  image: z.string().min(1).nullish(),
  /** Where the agent and `test.sh` begin; by default what the task's Dockerfile says last, else /app. */
  workdir: z.string().regex(/^\//, "must be an absolute path").nullish(),
});

const seconds = z.number().positive().max(86_400);

/** The parts of Harbor's `task.toml` that say something here. Sizes of machines are the service's to set. */
const taskSchema = z.looseObject({
  task: z.looseObject({ name: z.string().optional() }).optional(),
  artifacts: z.array(z.unknown()).optional(),
  agent: z.looseObject({ timeout_sec: seconds.optional() }).optional(),
  verifier: z
    .looseObject({
      timeout_sec: seconds.default(600),
      env: z.record(z.string(), z.string()).default({}),
      environment_mode: z.enum(["shared", "separate"]).optional(),
      environment: z.unknown().optional(),
    })
    .prefault({}),
  environment: z
    .looseObject({ docker_image: z.string().optional(), workdir: z.string().optional() })
    .optional(),
});

export type HarborInstance = {
  instruction: string;
  name: string;
  image: string | null;
  workdir: string;
  tests: Record<string, string>;
  solution: Record<string, string> | null;
  verifierTimeoutMs: number;
  env: Record<string, string>;
  /** What a verifier in a fresh sandbox gets of the agent's; null where it works in the agent's own. */
  artefacts: string[] | null;
};

/** @throws ServiceError `invalid_field` */
export function parseHarborRow(raw: Record<string, unknown>): HarborInstance {
  const row = parseRow(rowSchema, raw);
  if (!row.tests["test.sh"]) throw wrong("tests", "lacks test.sh");
  const { environment, verifier, artifacts = [], task } = parseTask(row.task_toml);
  const separate = verifier.environment_mode === "separate";
  if (verifier.environment !== undefined) {
    throw wrong("task_toml", "gives the verifier an image of its own, which is not supported");
  }
  const paths = artifacts.filter((path) => typeof path === "string");
  if (separate && (paths.length === 0 || paths.length < artifacts.length)) {
    throw wrong("task_toml", "names no artifacts (as paths) for its separate verifier");
  }
  const image = row.image ?? environment?.docker_image ?? null;
  return {
    instruction: row.instruction,
    name: task?.name ?? "",
    image:
      image && /^[^/:]+\/|:/.test(image) && !image.includes("://") && !image.startsWith("/")
        ? `docker://${image}`
        : image,
    workdir: row.workdir ?? environment?.workdir ?? "/app",
    tests: row.tests,
    solution: row.solution ?? null,
    verifierTimeoutMs: verifier.timeout_sec * 1000,
    env: verifier.env,
    artefacts: separate ? paths : null,
  };
}

function parseTask(text: string): z.output<typeof taskSchema> {
  let toml: unknown;
  try {
    toml = Bun.TOML.parse(text);
  } catch (error) {
    throw wrong("task_toml", `is not valid TOML: ${(error as Error).message}`);
  }
  const parsed = taskSchema.safeParse(toml);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw wrong("task_toml", `${issue?.path.join(".")}: ${issue?.message}`);
}

function wrong(field: string, what: string): ServiceError {
  return new ServiceError("invalid_field", `instance.${field} ${what}`, {
    field: `instance.${field}`,
  });
}

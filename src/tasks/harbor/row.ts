import { availableParallelism } from "node:os";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { parseRow } from "../parse-row.ts";
import { refuseWhatIsMissing } from "./refused.ts";
import {
  type EnvironmentToml,
  type Healthcheck,
  type MinReward,
  megabytesOf,
  readTaskToml,
  type TaskToml,
  type VerifierToml,
} from "./task-toml.ts";
import { type FirstTerminalBench, readTaskYaml } from "./task-yaml.ts";

/** Base64 by path relative to the folder. */
const files = z.record(
  z.string().regex(/^(?!\/)(?!.*(^|\/)\.\.(\/|$)).+$/, "must be a path below the folder"),
  z.base64(),
);

const rowSchema = z.looseObject({
  /** The text of `instruction.md`. Tasks in steps and those of Terminal-Bench 1 have theirs elsewhere. */
  instruction: z.string().min(1).nullish(),
  /** The text of `task.toml`. */
  task_toml: z.string().nullish(),
  /** The text of `task.yaml`, of a task of Terminal-Bench 1. */
  task_yaml: z.string().nullish(),
  tests: files.nullish(),
  solution: files.nullish(),
  /** By the names of `task.toml`'s steps: what lies in `steps/NAME`. */
  steps: z
    .record(
      z.string(),
      z.looseObject({
        instruction: z.string().min(1),
        tests: files.nullish(),
        solution: files.nullish(),
        workdir: files.nullish(),
      }),
    )
    .nullish(),
  image: z.string().min(1).nullish(),
  /** Texts of `environment/Dockerfile` and of its `docker-compose.yaml`, which nothing here builds or starts. */
  dockerfile: z.string().nullish(),
  compose: z.string().nullish(),
  /** Where the agent and `test.sh` begin; by default what the task's Dockerfile says last, else /app. */
  workdir: z.string().regex(/^\//, "must be an absolute path").nullish(),
});

export type HarborRow = z.output<typeof rowSchema>;
type Files = Record<string, string>;

/** One round of an agent's work and its tests. Most tasks have one. */
export type HarborStep = {
  /** Null: the task is not in steps. */
  name: string | null;
  instruction: string;
  /** Laid over the working folder before the agent begins; a `setup.sh` in it is run. */
  workdir: Files;
  healthcheck: Healthcheck | null;
  tests: Files;
  solution: Files | null;
  /** Of the solution. The agent's own time is the rollout's to bound. */
  agentTimeoutMs: number | null;
  verifierTimeoutMs: number;
  verifierEnv: Record<string, string>;
  minReward: MinReward;
};

export type HarborArtefact = { source: string; exclude: string[] };

export type HarborInstance = {
  name: string;
  image: string | null;
  /** The task's image is to be made of a Dockerfile. */
  hasDockerfile: boolean;
  workdir: string;
  env: Record<string, string>;
  solutionEnv: Record<string, string>;
  healthcheck: Healthcheck | null;
  memoryBytes: number | null;
  diskBytes: number | null;
  steps: HarborStep[];
  rewardOfSteps: "mean" | "final";
  /** A verifier in a fresh sandbox, and what it gets of the agent's; null: it works in the agent's own. */
  separate: {
    artefacts: HarborArtefact[];
    collect: { command: string; timeoutMs: number }[];
    image: string | null;
    env: Record<string, string> | null;
  } | null;
  /** Programs of the folder, and how the verifier's reward is read. */
  form: "harbor" | FirstTerminalBench;
  /** The row asks for a network, which sandboxes do not have. */
  network: string | null;
  warnings: string[];
};

/** @throws ServiceError `invalid_field` */
export function parseHarborRow(raw: Record<string, unknown>): HarborInstance {
  const row = parseRow(rowSchema, raw);
  if (row.task_yaml != null) return firstTerminalBench(row, row.task_yaml);
  if (row.task_toml == null)
    throw wrong("task_toml", "is missing: a row has task_toml or task_yaml");
  const read = readTaskToml(row.task_toml);
  if ("problem" in read) throw wrong("task_toml", read.problem);
  const { task, warnings } = read;
  refuseWhatIsMissing(row, task);
  const { environment } = task;
  return {
    name: task.task?.name ?? "",
    image: imageReference(row.image ?? environment.docker_image ?? null),
    hasDockerfile: Boolean(row.dockerfile),
    workdir: row.workdir ?? environment.workdir ?? workdirOf(row.dockerfile) ?? "/app",
    env: environment.env,
    solutionEnv: task.solution.env,
    healthcheck: environment.healthcheck ?? null,
    memoryBytes: sizeOf(environment, "memory"),
    diskBytes: sizeOf(environment, "storage"),
    steps: task.steps ? stepsOf(row, task) : [onlyStep(row, task)],
    rewardOfSteps: task.multi_step_reward_strategy,
    separate: separateOf(task),
    form: "harbor",
    network: networkAskedFor(task) ?? fetching(row),
    warnings: [...warnings, ...unmet(environment)],
  };
}

/** What a task may have, and can do without. */
function unmet({ allow_internet, cpus = 0 }: EnvironmentToml): string[] {
  const cores = availableParallelism();
  return [
    ...(allow_internet ? ["task.toml: environment.allow_internet: a sandbox has no network"] : []),
    ...(cpus > cores ? [`task.toml: environment.cpus is ${cpus}, and the node has ${cores}`] : []),
  ];
}

function onlyStep(row: HarborRow, { agent, verifier }: TaskToml): HarborStep {
  if (!row.instruction) throw wrong("instruction", "is missing");
  const tests = row.tests ?? {};
  if (!tests["test.sh"]) throw wrong("tests", "lacks test.sh");
  return {
    name: null,
    instruction: row.instruction,
    workdir: {},
    healthcheck: null,
    tests,
    solution: row.solution ?? null,
    agentTimeoutMs: agent.timeout_sec ? agent.timeout_sec * 1000 : null,
    verifierTimeoutMs: verifier.timeout_sec * 1000,
    verifierEnv: verifier.env,
    minReward: undefined,
  };
}

function stepsOf(row: HarborRow, task: TaskToml): HarborStep[] {
  return (task.steps ?? []).map((step) => {
    const folder = row.steps?.[step.name];
    if (!folder) throw wrong("steps", `lacks "${step.name}", which task.toml names`);
    const tests = { ...row.tests, ...folder.tests };
    if (!tests["test.sh"]) throw wrong("steps", `"${step.name}" has no tests/test.sh`);
    const timeoutSec = step.agent.timeout_sec ?? task.agent.timeout_sec;
    return {
      name: step.name,
      instruction: folder.instruction,
      workdir: folder.workdir ?? {},
      healthcheck: step.healthcheck ?? null,
      tests,
      solution: folder.solution ?? row.solution ?? null,
      agentTimeoutMs: timeoutSec ? timeoutSec * 1000 : null,
      verifierTimeoutMs: step.verifier.timeout_sec * 1000,
      verifierEnv: { ...task.verifier.env, ...step.verifier.env },
      minReward: step.min_reward,
    };
  });
}

function firstTerminalBench(row: HarborRow, yaml: string): HarborInstance {
  const read = readTaskYaml(yaml);
  if ("problem" in read) throw wrong("task_yaml", read.problem);
  const { instruction, agentTimeoutMs, testTimeoutMs, form } = read;
  refuseWhatIsMissing(row, null);
  const tests = row.tests ?? {};
  if (!tests["run-tests.sh"]) throw wrong("tests", "lacks run-tests.sh");
  const step: HarborStep = {
    name: null,
    instruction,
    workdir: {},
    healthcheck: null,
    tests,
    solution: row.solution ?? null,
    agentTimeoutMs,
    verifierTimeoutMs: testTimeoutMs,
    verifierEnv: { TEST_DIR: "/tests" },
    minReward: undefined,
  };
  return {
    name: "",
    image: imageReference(row.image ?? null),
    hasDockerfile: Boolean(row.dockerfile),
    workdir: row.workdir ?? workdirOf(row.dockerfile) ?? "/app",
    env: {},
    solutionEnv: {},
    healthcheck: null,
    memoryBytes: null,
    diskBytes: null,
    steps: [step],
    rewardOfSteps: "final",
    separate: null,
    form,
    network: null,
    warnings: [],
  };
}

/** The conventional folder goes along whether the task names it or not. */
function separateOf({ verifier, artifacts }: TaskToml): HarborInstance["separate"] {
  if (!isSeparate(verifier)) return null;
  const named = artifacts.map(({ source, exclude }) => ({ source, exclude }));
  const own = named.some(({ source }) => source.replace(/\/+$/, "") === PUBLISHED);
  const { environment } = verifier;
  return {
    artefacts: own ? named : [{ source: PUBLISHED, exclude: [] }, ...named],
    collect: verifier.collect.map(({ command, timeout_sec }) => ({
      command,
      timeoutMs: timeout_sec * 1000,
    })),
    image: imageReference(environment?.docker_image ?? null),
    env: environment ? environment.env : null,
  };
}

const PUBLISHED = "/logs/artifacts";

export function isSeparate({ environment_mode, environment }: VerifierToml): boolean {
  return (environment_mode ?? (environment ? "separate" : "shared")) === "separate";
}

function sizeOf(environment: EnvironmentToml, what: "memory" | "storage"): number | null {
  const text = environment[what];
  const size = environment[`${what}_mb`] ?? (text === undefined ? undefined : megabytesOf(text));
  if (size === null) throw wrong("task_toml", `environment.${what}: "${text}" is no size`);
  return size === undefined ? null : Math.round(size * 1024 ** 2);
}

function networkAskedFor({ environment, agent, verifier }: TaskToml): string | null {
  const asking = Object.entries({ environment, agent, verifier }).find(
    ([, { network_mode }]) => (network_mode ?? "no-network") !== "no-network",
  );
  return asking ? `${asking[0]}.network_mode` : null;
}

/**
 * Programs that fetch: where a sandbox has no network, tests that install their own runner give 0 to every answer.
 * Source: the template of `harbor tasks init`, and 3,600 public folders.
 */
const FETCHES =
  /^.*?\b((?:curl|wget)\b.*\bhttps?:|(?:apt|apt-get|apk|yum|dnf)\s+(?:-\S+\s+)*(?:update|install|add)\b|(?:pip3?|uv pip|conda|npm|yarn|cargo|gem)\s+(?:install|add)\b(?!.*--no-index)|uvx\b|uv\s+(?:run|sync|init|add)\b(?!.*--offline)|git\s+clone\s+http).*$/m;

/** The first line of a verifier that fetches something; null where none does. */
function fetching({ tests, steps }: HarborRow): string | null {
  const folders = [tests, ...Object.values(steps ?? {}).map((step) => step.tests)];
  for (const folder of folders) {
    const script = Buffer.from(folder?.["test.sh"] ?? "", "base64").toString();
    const lines = script.split("\n").filter((line) => !/^\s*#/.test(line));
    const line = lines.find((candidate) => FETCHES.test(candidate));
    if (line !== undefined) return `test.sh: ${line.trim().slice(0, 100)}`;
  }
  return null;
}

function workdirOf(dockerfile: string | null | undefined): string | null {
  return [...(dockerfile ?? "").matchAll(/^\s*WORKDIR\s+"?(\/[^\s"]*)/gim)].at(-1)?.[1] ?? null;
}

/** A name as Docker writes it, as a reference. */
function imageReference(image: string | null): string | null {
  const isName = image && /^[^/:]+\/|:/.test(image) && !/:\/\//.test(image);
  return isName && !image.startsWith("/") ? `docker://${image}` : image;
}

export function wrong(field: string, what: string, mend?: string): ServiceError {
  return new ServiceError("invalid_field", `instance.${field} ${what}`, {
    field: `instance.${field}`,
    mend,
  });
}

import { flagOf } from "../config/settings.ts";
import { agentSchema, limitsSchema, rolloutIdSchema, samplingSchema } from "../protocol/rollout.ts";
import { type Idle, type parseFlags, UsageError, wholeNumber } from "./flags.ts";
import { plainIssue } from "./plain-issue.ts";
import { OWN_SERVER } from "./run-server.ts";

/** A slip of the finger is not to fill the memory. */
export const MAX_SAMPLES = 100_000;
/** As the service takes them. */
const MAX_GROUP = 1024;

export const RUN_FLAGS = {
  server: { type: "string" },
  backend: { type: "string" },
  model: { type: "string" },
  "model-dir": { type: "string" },
  "api-key-env": { type: "string" },
  engine: { type: "string" },
  image: { type: "string" },
  apptainer: { type: "string" },
  tasks: { type: "string" },
  config: { type: "string" },
  samples: { type: "string" },
  "group-size": { type: "string" },
  informative: { type: "string" },
  seed: { type: "string" },
  temperature: { type: "string" },
  "top-p": { type: "string" },
  "max-tokens": { type: "string" },
  "max-turns": { type: "string" },
  "run-limit-ms": { type: "string" },
  "data-source": { type: "string" },
  limit: { type: "string" },
  "id-prefix": { type: "string" },
  out: { type: "string" },
  force: { type: "boolean" },
  resume: { type: "string" },
  show: { type: "string" },
  golden: { type: "boolean" },
  json: { type: "boolean" },
} as const;

export type RunValues = ReturnType<typeof parseFlags<typeof RUN_FLAGS>>["values"];

/** What has no effect in the way of running that the other flags ask for. */
export function idleFlags(values: RunValues, server: string | undefined): Idle[] {
  const named = values.server === undefined ? "ROLLOUTD_SERVER" : "--server";
  const groups = values.informative !== undefined;
  return [
    {
      flags: [...OWN_SERVER.filter((name) => name !== "image"), "config"],
      when: server !== undefined,
      why: `is for a service of run's own, and ${named} names one that runs: leave one of them out`,
    },
    {
      flags: ["backend", "model", "model-dir", "api-key-env", "engine"],
      when: values.golden === true,
      why: "has no effect with --golden, which asks no model: leave one of them out",
    },
    {
      flags: ["samples", "seed", "temperature", "top-p", "max-tokens", "max-turns"],
      when: values.golden === true,
      why: "has no effect with --golden, which samples nothing: leave one of them out",
    },
    {
      flags: ["informative"],
      when: values.golden === true,
      why: "does not go with --golden, which has no groups",
    },
    {
      flags: ["group-size"],
      when: !groups,
      why: "goes with --informative N; rollouts of a row are --samples N",
    },
    {
      flags: ["samples"],
      when: groups && values["group-size"] !== undefined,
      why: "has no effect beside --group-size: leave one of them out",
    },
    { flags: ["resume"], when: groups, why: "is for rollouts, not for groups (--informative)" },
    { flags: ["show"], when: groups, why: "is for rollouts, not for groups (--informative)" },
    { flags: ["show"], when: values.json === true, why: "has no effect with --json" },
    {
      flags: ["out", "force"],
      when: values.resume !== undefined,
      why: "does not go with --resume FILE, which names the file itself and keeps what it has",
    },
    {
      flags: ["model", "model-dir", "api-key-env", "engine"],
      when: server === undefined && values.backend === undefined && !process.env.ROLLOUTD_BACKEND,
      why: "needs --backend URL",
    },
  ];
}

/** Null: no groups. @throws UsageError where rewards could not differ */
export function groupsOf({ informative, samples, "group-size": size }: RunValues) {
  if (informative === undefined) return null;
  return {
    groupSize: wholeNumber("--group-size", size ?? samples ?? "", 2, MAX_GROUP),
    informative: wholeNumber("--informative", informative, 1),
  };
}

/** With row and sample behind it, it names a rollout. @throws UsageError */
export function prefixOf(given: string | undefined): string {
  const prefix = given ?? `run-${crypto.randomUUID().slice(0, 8)}`;
  if (rolloutIdSchema.safeParse(`${prefix}-0-0`).success && !prefix.includes("/")) return prefix;
  throw new UsageError(
    `--id-prefix "${prefix}" can't begin the name of a rollout: use letters, digits, . _ -`,
  );
}

/** Bounds as `POST /v1/rollouts` has them, told before anything starts. */
const NUMBERS = {
  temperature: samplingSchema.shape.temperature,
  top_p: samplingSchema.shape.top_p,
  max_tokens: samplingSchema.shape.max_tokens,
  max_turns: agentSchema.shape.max_turns,
  run_limit_ms: limitsSchema.shape.run_ms,
} as const;

/** @throws UsageError */
export function numberOf(name: keyof typeof NUMBERS, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const flag = flagOf(name);
  const value = Number(text);
  if (!/^-?(\d+|\d*\.\d+)(e-?\d+)?$/i.test(text) || !Number.isFinite(value)) {
    throw new UsageError(`${flag} takes a number, not "${text}"`);
  }
  const issue = NUMBERS[name].safeParse(value).error?.issues[0];
  if (issue) throw new UsageError(`${flag} ${text} ${plainIssue(issue)}`);
  return value;
}

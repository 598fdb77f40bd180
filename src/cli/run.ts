import { type Config, flagOf } from "../config/settings.ts";
import { agentSchema, limitsSchema, rolloutIdSchema, samplingSchema } from "../protocol/rollout.ts";
import { serverAddress } from "./api-client.ts";
import type { Command } from "./command.ts";
import { type Idle, parseFlags, refuseIdle, UsageError, wholeNumber } from "./flags.ts";
import { imageFlag } from "./image-argument.ts";
import { madeWith } from "./made-with.ts";
import { readPastResults } from "./past-results.ts";
import { plainIssue } from "./plain-issue.ts";
import { ResultFile } from "./result-file.ts";
import { resume } from "./resume.ts";
import { readRows } from "./rows.ts";
import { runBatch } from "./run-batch.ts";
import { planRollouts, rolloutTemplate, termsOf } from "./run-collect.ts";
import { runRollouts } from "./run-rollouts.ts";
import { OWN_SERVER, ownConfig, serverFor } from "./run-server.ts";

export const runCommand: Command = {
  name: "run",
  summary: "run the rows of a JSONL file and collect rewards and trajectories",
  help: `Usage: rolloutd run ROWS.jsonl (--server ADDRESS | --backend URL [--model NAME] | --golden) [flags]

Each line of ROWS.jsonl is a dataset row; its data_source chooses the task kind. A file may also be one JSON list
of rows, and a folder holds Harbor tasks. With --server the rows go to a running service; otherwise run starts one
of its own, which ends with it. Every row is looked at before the first rollout begins. The result is one line of
JSON per rollout, written as it ends: row, sample, reward, error, timings and trajectory. Ctrl-C cancels what is
left, keeps what has ended, and exits with 130.

  --server ADDRESS     http://host:port or the path of the Unix socket [ROLLOUTD_SERVER, without --backend]
  --backend URL        inference server for the own service, OpenAI-compatible, with /v1
  --model NAME         its model, where it has several
  --model-dir DIR      its Hugging Face folder: then token ids, exactly as sampled, instead of text
  --api-key-env NAME   variable that holds its key
  --engine KIND        its kind, where it is not to be found out (see backends --help)
  --image IMAGE        of the sandboxes: a name, a path, … (see rolloutd images --help); with --server of every
                       row, else of those that name none
  --apptainer PROGRAM  by default the one on PATH
  --config FILE        further settings of the own service as TOML (see serve --help); or by their variables
  --samples N          rollouts per row; sample k has seed SEED + k [1]
  --informative N      until N groups are informative, that is, their rewards differ; then one group a line
  --group-size N       rollouts per group, with --informative
  --seed SEED          [0]
  --temperature T, --top-p P, --max-tokens N
                       sampling parameters; what is left out is the engine's default
  --max-turns N        calls of the model per rollout
  --run-limit-ms MS    time limit of RUN, per rollout
  --data-source NAME   of rows that name none, as published ones often do
  --limit N            only the first N rows
  --golden             no model: scores the rows' own solutions, which must earn 1, and no work at all, which must
                       earn 0, and so checks rows, images and tests; exit code 1 where one does not
  --id-prefix PREFIX   rollouts are named PREFIX-ROW-SAMPLE; the same prefix again adopts them
  --out FILE           where the results go [rollouts-PREFIX.jsonl]; a file that has content already is refused
  --force              replaces what the file has
  --resume FILE        go on with an earlier run's results: what has none in FILE, or failed for a reason that is not
                       the policy's, is run, and FILE has all in the end. Results that are not asked for now stay. Rows
                       and terms (sampling, model, image, …) have to be those of FILE, as its made_with has them
  --show N             print N trajectories at the end [0]
  --json               results to standard output, as they end, instead of a table

Exit code 1 when a rollout came to no verdict for a reason that is not the policy's, or that was not asked
for.
`,
  async run(argv, context) {
    const { values, positionals } = parseFlags(argv, RUN_FLAGS);
    const [path] = positionals;
    if (path === undefined || positionals.length > 1)
      throw new UsageError("one file of rows is needed");
    const own = values.backend !== undefined || values.golden === true;
    const server = values.server ?? (own ? undefined : process.env.ROLLOUTD_SERVER || undefined);
    refuseIdle(values, idleFlags(values, server));
    if (server === undefined && !own) {
      throw new UsageError("--server ADDRESS or --backend URL is needed");
    }
    if (server !== undefined) serverAddress(server);
    const groups = groupsOf(values);
    const limit = values.limit === undefined ? undefined : wholeNumber("--limit", values.limit, 1);
    const show = wholeNumber("--show", values.show ?? "0");
    const prefix = prefixOf(values["id-prefix"]);
    const config = server === undefined ? ownConfig(values) : null;
    const plan = {
      prefix,
      samples: wholeNumber("--samples", values.samples ?? "1", 1, MAX_SAMPLES),
      seed: wholeNumber("--seed", values.seed ?? "0"),
      sampling: {
        temperature: numberOf("temperature", values.temperature),
        top_p: numberOf("top_p", values["top-p"]),
        max_tokens: numberOf("max_tokens", values["max-tokens"]),
      },
      maxTurns: numberOf("max_turns", values["max-turns"]),
      runLimitMs: numberOf("run_limit_ms", values["run-limit-ms"]),
      image: server && values.image !== undefined ? imageFlag(values.image) : undefined,
      golden: values.golden === true,
    };
    const rows = readRows(path, values["data-source"]).slice(0, limit);
    const terms = madeWith(termsOf(plan, path), config);
    const json = values.json === true;
    const out = values.resume ?? values.out ?? `${groups ? "groups" : "rollouts"}-${prefix}.jsonl`;
    const mode = values.resume !== undefined ? "resume" : values.force ? "force" : "new";
    using file = new ResultFile(out, {
      ...{ mode, input: path, echo: json },
      resumable: groups === null,
    });
    const where = server ?? (config as Config);
    if (groups) {
      await using service = await serverFor(where, context);
      const template = rolloutTemplate(plan);
      const options = { id: prefix, template, json, file, terms, ...groups };
      return await runBatch(service.client, rows, options);
    }
    const planned = planRollouts(rows, plan);
    const past = mode === "resume" ? readPastResults(file.path, file.fd) : null;
    const resumed = resume(file.path, past, planned, { rows, terms });
    await using service = await serverFor(where, context);
    const options = { file, past, resumed, terms, json, show, golden: plan.golden };
    return await runRollouts(service.client, planned, options);
  },
};

/** A slip of the finger is not to fill the memory. */
const MAX_SAMPLES = 100_000;
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

type Values = ReturnType<typeof parseFlags<typeof RUN_FLAGS>>["values"];

/** What has no effect in the way of running that the other flags ask for. */
export function idleFlags(values: Values, server: string | undefined): Idle[] {
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
function groupsOf({ informative, samples, "group-size": size }: Values) {
  if (informative === undefined) return null;
  return {
    groupSize: wholeNumber("--group-size", size ?? samples ?? "", 2, MAX_GROUP),
    informative: wholeNumber("--informative", informative, 1),
  };
}

/** With row and sample behind it, it names a rollout. @throws UsageError */
function prefixOf(given: string | undefined): string {
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
function numberOf(name: keyof typeof NUMBERS, text: string | undefined): number | undefined {
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

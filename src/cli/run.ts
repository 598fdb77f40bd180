import type { Command } from "./command.ts";
import { parseFlags, UsageError, wholeNumber } from "./flags.ts";
import { imageArgument } from "./image-argument.ts";
import { outFile } from "./out-file.ts";
import { readRows } from "./rows.ts";
import { runBatch } from "./run-batch.ts";
import { planRollouts, rolloutTemplate } from "./run-collect.ts";
import { runRollouts } from "./run-rollouts.ts";
import { serverFor } from "./run-server.ts";

export const runCommand: Command = {
  name: "run",
  summary: "run the rows of a JSONL file and collect rewards and trajectories",
  help: `Usage: rolloutd run ROWS.jsonl (--server ADDRESS | --backend URL [--model NAME] | --golden) [flags]

Each line of ROWS.jsonl is a dataset row; its data_source chooses the task kind. A file may also be one JSON list
of rows, and a folder holds Harbor tasks. With --server the rows go to a running service; otherwise run starts one
of its own, which ends with it. Every row is looked at before the first rollout begins. The result is one line of
JSON per rollout, written as it ends: row, sample, reward, error, timings and trajectory. Ctrl-C cancels what is
left and keeps what has ended.

  --server ADDRESS     http://host:port or the path of the Unix socket [ROLLOUTD_SERVER, without --backend]
  --backend URL        inference server for the own service, OpenAI-compatible, with /v1
  --model NAME         its model, where it has several
  --model-dir DIR      its Hugging Face folder: then token ids, exactly as sampled, instead of text
  --api-key-env NAME   variable that holds its key
  --engine KIND        its kind, where it is not to be found out (see backends --help)
  --image IMAGE        of the sandboxes: a name, a path, … (see rolloutd images --help)
  --registries LIST, --image-dirs LIST
                       what rows may name as images, as for \`rolloutd serve\`, such as docker.io
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
  --out FILE           where the results go [rollouts-PREFIX.jsonl]
  --resume FILE        go on with an earlier run's results: what has none in FILE, or failed for a reason that is not
                       the policy's, is run, and FILE has all in the end
  --show N             print N trajectories at the end [0]
  --json               results to standard output, as they end, instead of a table

Exit code 1 when a rollout came to no verdict for a reason that is not the policy's, or that was not asked
for.
`,
  async run(argv, context) {
    const { values: given, positionals } = parseFlags(argv, FLAGS);
    const own = given.backend || given.golden;
    const values = {
      ...given,
      server: given.server ?? (own ? undefined : process.env.ROLLOUTD_SERVER),
    };
    const [path] = positionals;
    if (path === undefined || positionals.length > 1)
      throw new UsageError("one file of rows is needed");
    if (!values.server && !values.backend && !values.golden) {
      throw new UsageError("--server ADDRESS or --backend URL is needed");
    }
    const groupSize = groupSizeOf(values);
    const limit = values.limit === undefined ? undefined : wholeNumber("--limit", values.limit, 1);
    const rows = readRows(path, values["data-source"]).slice(0, limit);
    const prefix = values["id-prefix"] ?? `run-${crypto.randomUUID().slice(0, 8)}`;
    const plan = {
      prefix,
      samples: wholeNumber("--samples", values.samples, 1),
      seed: wholeNumber("--seed", values.seed),
      sampling: {
        temperature: decimal("--temperature", values.temperature),
        top_p: decimal("--top-p", values["top-p"]),
        max_tokens: decimal("--max-tokens", values["max-tokens"]),
      },
      maxTurns: decimal("--max-turns", values["max-turns"]),
      runLimitMs: decimal("--run-limit-ms", values["run-limit-ms"]),
      image: values.server && values.image ? imageArgument(values.image, "image") : undefined,
      golden: values.golden === true,
    };
    const { informative } = values;
    const what = informative === undefined ? "rollouts" : "groups";
    const resumes = values.resume !== undefined;
    if (resumes && (values.out !== undefined || informative !== undefined)) {
      throw new UsageError("--resume names the file itself, and is for rollouts, not groups");
    }
    const out = outFile(values.resume ?? values.out ?? `${what}-${prefix}.jsonl`);
    await using server = await serverFor(values, context);
    const json = values.json === true;
    if (informative !== undefined && groupSize !== null) {
      return await runBatch(server.client, rows, {
        ...{ id: prefix, template: rolloutTemplate(plan), json },
        groupSize,
        informative: wholeNumber("--informative", informative, 1),
        out,
      });
    }
    const show = wholeNumber("--show", values.show);
    const options = { out, resumes, json, show, golden: values.golden === true };
    return await runRollouts(server.client, planRollouts(rows, plan), options);
  },
};

const FLAGS = {
  server: { type: "string" },
  backend: { type: "string" },
  model: { type: "string" },
  "model-dir": { type: "string" },
  "api-key-env": { type: "string" },
  engine: { type: "string" },
  image: { type: "string" },
  "image-dirs": { type: "string" },
  registries: { type: "string" },
  apptainer: { type: "string" },
  config: { type: "string" },
  samples: { type: "string", default: "1" },
  "group-size": { type: "string" },
  informative: { type: "string" },
  seed: { type: "string", default: "0" },
  temperature: { type: "string" },
  "top-p": { type: "string" },
  "max-tokens": { type: "string" },
  "max-turns": { type: "string" },
  "run-limit-ms": { type: "string" },
  "data-source": { type: "string" },
  limit: { type: "string" },
  "id-prefix": { type: "string" },
  out: { type: "string" },
  resume: { type: "string" },
  show: { type: "string", default: "0" },
  golden: { type: "boolean" },
  json: { type: "boolean" },
} as const;

type GroupFlags = { informative?: string; "group-size"?: string; samples: string };

/** Null: no groups. @throws UsageError where rewards could not differ, or groups have no goal */
function groupSizeOf({ informative, samples, "group-size": given }: GroupFlags): number | null {
  if (informative !== undefined) return wholeNumber("--group-size", given ?? samples, 2);
  if (given === undefined) return null;
  throw new UsageError("--group-size goes with --informative N; rollouts of a row are --samples N");
}

function decimal(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) {
    throw new UsageError(`${flag} takes a number, not "${text}"`);
  }
  return value;
}

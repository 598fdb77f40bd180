import type { Config } from "../config/settings.ts";
import { serverAddress } from "./api-client.ts";
import type { Command } from "./command.ts";
import { parseFlags, refuseIdle, UsageError, wholeNumber } from "./flags.ts";
import { imageFlag } from "./image-argument.ts";
import { madeWith } from "./made-with.ts";
import { readPastResults } from "./past-results.ts";
import { ResultFile } from "./result-file.ts";
import { resume } from "./resume.ts";
import { rowWarnings } from "./row-warnings.ts";
import { readRows } from "./rows.ts";
import { runBatch } from "./run-batch.ts";
import { planRollouts, rolloutTemplate, termsOf } from "./run-collect.ts";
import { groupsOf, idleFlags, MAX_SAMPLES, numberOf, prefixOf, RUN_FLAGS } from "./run-flags.ts";
import { runRollouts } from "./run-rollouts.ts";
import { ownConfig, serverFor } from "./run-server.ts";

export const runCommand: Command = {
  name: "run",
  summary: "run the rows of a JSONL file and collect rewards and trajectories",
  help: `Usage: rolloutd run ROWS.jsonl (--server ADDRESS | --backend URL [--model NAME] | --golden | --tasks MODULES) [flags]

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
  --image IMAGE        of the sandboxes: a name, a path, … (see rolloutd images --help), also where rows name their own
  --apptainer PROGRAM  by default the one on PATH
  --tasks MODULES      with task kinds of your own, for the own service (TypeScript or JavaScript, commas between)
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
  --golden             no model: scores the rows' own solutions (sample 0), which must earn 1, no work at all (1), which
                       must earn 0, and for swe the solutions by way of the agent's sandbox (2), and so checks rows,
                       images and tests; shows the end of the log and has exit code 1 where one does not
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
    const own =
      [values.backend, values.tasks].some((given) => given !== undefined) || values.golden === true;
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
      image: values.image !== undefined ? imageFlag(values.image) : undefined,
      golden: values.golden === true,
    };
    const rows = readRows(path, values["data-source"]).slice(0, limit);
    for (const warning of rowWarnings(rows)) process.stderr.write(`warning: ${warning}\n`);
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

import { print, printError } from "../lib/print.ts";
import type { ApiClient } from "./api-client.ts";
import { checkRows } from "./check-rows.ts";
import { EXIT } from "./command.ts";
import { inParts } from "./in-parts.ts";
import { inTurn } from "./in-turn.ts";
import { onInterrupt } from "./on-interrupt.ts";
import { Progress } from "./progress.ts";
import { ResultFile } from "./result-file.ts";
import { resume } from "./resume.ts";
import {
  collect,
  inOrder,
  isGolden,
  type PlannedRollout,
  type RolloutResult,
} from "./run-collect.ts";
import { formatFailures } from "./run-failures.ts";
import { formatSummary, formatTrajectory } from "./run-report.ts";
import { WaitReason } from "./wait-reason.ts";

/** Cancels that are asked for at once. */
const CANCELS = 64;

type Options = {
  out: string;
  /** `out` is an earlier run's, to go on with. */
  resumes: boolean;
  json: boolean;
  /** How many of the planned rollouts are printed whole at the end. */
  show: number;
  golden: boolean;
};

/** Runs each planned rollout: progress, a table, and one result a line in the order in which they end. */
export async function runRollouts(
  client: ApiClient,
  all: PlannedRollout[],
  { out, resumes, json, show, golden }: Options,
): Promise<number> {
  await checkRows(
    client,
    all.filter(({ sample }) => sample === 0 || golden),
  );
  const { kept, rest: planned } = resumes ? await resume(out, all) : { kept: [], rest: all };
  if (resumes) printError(`${kept.length} of ${all.length} results stand\n`);
  const file = new ResultFile(out, json, kept.length);
  const { finished_cursor: cursor } = await client.status();
  const submitted = [];
  for (const part of inParts(planned.map(({ request }) => request))) {
    submitted.push(...(await client.submit(part)).rollouts);
  }
  const ids = planned.map(({ request }) => request.id);
  const shown = new Map<string, RolloutResult | null>(ids.slice(0, show).map((id) => [id, null]));
  using interrupt = onInterrupt(() => cancelAll(client, ids));
  const ended = await collect(client, planned, submitted, cursor, {
    progress: new Progress(planned.length),
    waits: new WaitReason(client),
    keep(result) {
      file.add(result);
      if (shown.has(result.id)) shown.set(result.id, result);
    },
  });
  const results = inOrder([...kept, ...ended]);
  if (!json) {
    print(formatSummary(results) + formatFailures(results));
    for (const result of shown.values()) {
      if (result) print(`\n${formatTrajectory(result)}`);
    }
    print(`\n${file.lines} results in ${out}\n`);
  }
  if (interrupt.came) printError(`go on with: --resume ${out}\n`);
  const broken = results.some(
    ({ error }) => error && !["policy", "client"].includes(error.boundary),
  );
  const unfit = golden && !results.every(isGolden);
  return broken || unfit || interrupt.came ? EXIT.failed : EXIT.done;
}

/** Those that are over stay as they are. */
async function cancelAll(client: ApiClient, ids: string[]): Promise<void> {
  await inTurn(ids, CANCELS, (id) => client.cancel(id).catch(() => null));
}

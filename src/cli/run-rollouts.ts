import type { ApiClient } from "./api-client.ts";
import { checkRows } from "./check-rows.ts";
import { EXIT } from "./command.ts";
import { inParts } from "./in-parts.ts";
import { inTurn } from "./in-turn.ts";
import { onInterrupt } from "./on-interrupt.ts";
import { Progress } from "./progress.ts";
import { ResultFile } from "./result-file.ts";
import { collect, isGolden, type PlannedRollout, type RolloutResult } from "./run-collect.ts";
import { formatFailures } from "./run-failures.ts";
import { formatSummary, formatTrajectory } from "./run-report.ts";
import { WaitReason } from "./wait-reason.ts";

/** Cancels that are asked for at once. */
const CANCELS = 64;

type Options = {
  out: string;
  json: boolean;
  /** How many of the planned rollouts are printed whole at the end. */
  show: number;
  golden: boolean;
};

/** Runs each planned rollout: progress, a table, and one result a line in the order in which they end. */
export async function runRollouts(
  client: ApiClient,
  planned: PlannedRollout[],
  { out, json, show, golden }: Options,
): Promise<number> {
  await checkRows(
    client,
    planned.filter(({ sample }) => sample === 0 || golden),
  );
  const file = new ResultFile(out, json);
  const { finished_cursor: cursor } = await client.status();
  const submitted = [];
  for (const part of inParts(planned.map(({ request }) => request))) {
    submitted.push(...(await client.submit(part)).rollouts);
  }
  const ids = planned.map(({ request }) => request.id);
  const shown = new Map<string, RolloutResult | null>(ids.slice(0, show).map((id) => [id, null]));
  using interrupt = onInterrupt(() => cancelAll(client, ids));
  const results = await collect(client, planned, submitted, cursor, {
    progress: new Progress(planned.length),
    waits: new WaitReason(client),
    keep(result) {
      file.add(result);
      if (shown.has(result.id)) shown.set(result.id, result);
    },
  });
  if (!json) {
    process.stdout.write(formatSummary(results) + formatFailures(results));
    for (const result of shown.values()) {
      if (result) process.stdout.write(`\n${formatTrajectory(result)}`);
    }
    process.stdout.write(`\n${file.lines} results in ${out}\n`);
  }
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

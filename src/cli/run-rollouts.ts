import type { ApiClient } from "./api-client.ts";
import { checkRows } from "./check-rows.ts";
import { EXIT } from "./command.ts";
import type { Span } from "./file-spans.ts";
import { inParts } from "./in-parts.ts";
import { inTurn } from "./in-turn.ts";
import type { MadeWith } from "./made-with.ts";
import { onInterrupt } from "./on-interrupt.ts";
import type { PastResults } from "./past-results.ts";
import { Progress } from "./progress.ts";
import type { ResultFile } from "./result-file.ts";
import { placeOf, type Resumed, requireSameModel } from "./resume.ts";
import {
  collect,
  type EndedRollout,
  inOrder,
  isGolden,
  modelOf,
  type PlannedRollout,
  type RolloutResult,
} from "./run-collect.ts";
import { formatFailures } from "./run-failures.ts";
import { formatGolden } from "./run-golden.ts";
import { formatSummary, formatTrajectory } from "./run-report.ts";
import { exitOf } from "./signals.ts";
import { WaitReason } from "./wait-reason.ts";

/** Cancels that are asked for at once. */
const CANCELS = 64;

type Options = {
  file: ResultFile;
  /** What an earlier run left in the file, to go on with. */
  past: PastResults | null;
  resumed: Resumed;
  terms: MadeWith;
  json: boolean;
  /** How many of the planned rollouts are printed whole at the end. */
  show: number;
  golden: boolean;
};

/** Runs each planned rollout: progress, a table, and one result a line in the order in which they end. */
export async function runRollouts(
  client: ApiClient,
  all: PlannedRollout[],
  { file, past, resumed, terms, json, show, golden }: Options,
): Promise<number> {
  const madeWith = { ...terms, ...(await modelOf(client)) };
  if (past) requireSameModel(file.path, past, madeWith);
  await checkRows(
    client,
    all.filter(({ sample }) => sample === 0 || golden),
  );
  const { kept, rest: planned, replaced } = resumed;
  if (past) process.stderr.write(`${kept.length} of ${all.length} results stand\n`);
  if (past?.isTorn) process.stderr.write("the last line was torn: its rollout is run again\n");
  file.begin(past ? { bytes: past.bytes, lines: past.results.length } : undefined);
  const shown = new Map<string, RolloutResult | null>(
    planned.slice(0, show).map(({ request }) => [request.id, null]),
  );
  const asked: string[] = [];
  const giveUp = new AbortController();
  using interrupt = onInterrupt(async () => {
    giveUp.abort();
    await cancelAll(client, asked);
  });
  const superseded: Span[] = [];
  const keep = async (result: RolloutResult) => {
    await file.add(result, giveUp.signal);
    superseded.push(...(replaced.get(placeOf(result)) ?? []));
    if (shown.has(result.id)) shown.set(result.id, result);
  };
  try {
    const { finished_cursor: cursor } = await client.status();
    const submitted = [];
    for (const part of inParts(planned)) {
      if (interrupt.came) break;
      const requests = part.map(({ request }) => request);
      asked.push(...requests.map(({ id }) => id));
      submitted.push(...(await client.submit(requests)).rollouts);
    }
    // Those that were submitted while the interrupt asked for the end of the others.
    if (interrupt.came) await cancelAll(client, asked);
    const ended = await collect(client, planned.slice(0, asked.length), submitted, cursor, {
      progress: new Progress(asked.length),
      waits: new WaitReason(client),
      madeWith,
      keep,
    });
    file.finish(superseded);
    const results = inOrder([...kept, ...ended]);
    if (!json) report(results, shown.values(), file, golden);
    const broken = results.some(
      ({ error }) => error && !["policy", "client"].includes(error.boundary),
    );
    const unfit = golden && !results.every(isGolden);
    if (interrupt.came) {
      process.stderr.write(`go on with: --resume ${file.path}\n`);
      return exitOf(interrupt.came);
    }
    return broken || unfit ? EXIT.failed : EXIT.done;
  } catch (error) {
    process.stderr.write(
      `\n${file.lines} results are in ${file.path}; go on with: --resume ${file.path}\n`,
    );
    throw error;
  }
}

function report(
  results: EndedRollout[],
  shown: Iterable<RolloutResult | null>,
  { lines, path }: ResultFile,
  golden: boolean,
): void {
  const unfit = golden ? formatGolden(results) : "";
  process.stdout.write(formatSummary(results) + formatFailures(results) + unfit);
  for (const result of shown) {
    if (result) process.stdout.write(`\n${formatTrajectory(result)}`);
  }
  process.stdout.write(`\n${lines} results in ${path}\n`);
}

/** Those that are over stay as they are. */
async function cancelAll(client: ApiClient, ids: string[]): Promise<void> {
  await inTurn(ids, CANCELS, (id) => client.cancel(id).catch(() => null));
}

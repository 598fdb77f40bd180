import type { BatchView } from "../protocol/batch-view.ts";
import type { GroupView } from "../protocol/group-view.ts";
import type { ApiClient } from "./api-client.ts";
import { checkRows } from "./check-rows.ts";
import { EXIT } from "./command.ts";
import { inParts } from "./in-parts.ts";
import type { MadeWith } from "./made-with.ts";
import { onInterrupt } from "./on-interrupt.ts";
import { Progress } from "./progress.ts";
import type { ResultFile } from "./result-file.ts";
import type { PlacedRow, Row } from "./rows.ts";
import { modelOf } from "./run-collect.ts";
import { problemOf } from "./run-report.ts";
import { exitOf } from "./signals.ts";
import { formatTable } from "./table.ts";
import { WaitReason } from "./wait-reason.ts";

/** How long one request waits for the next group; the progress line is as fresh as that. */
const WAIT_MS = 250;

type Options = {
  id: string;
  groupSize: number;
  informative: number;
  /** What every rollout is made from, as `POST /v1/rollouts` takes it. */
  template: Record<string, unknown>;
  file: ResultFile;
  terms: MadeWith;
  json: boolean;
};

/** Runs rows as a batch until so many groups are informative: progress, a table, and one group a line. */
export async function runBatch(
  client: ApiClient,
  rows: PlacedRow[],
  options: Options,
): Promise<number> {
  const { id, groupSize: num_samples, informative, template, file, json } = options;
  const madeWith = { ...options.terms, ...(await modelOf(client)) };
  await checkRows(
    client,
    rows.map(({ row: instance, place }) => ({ place, request: { ...template, instance } })),
  );
  const goal = { groups: informative };
  await client.submitBatch({ ...template, id, num_samples, goal, instances: [], open: true });
  file.begin();
  const giveUp = new AbortController();
  using interrupt = onInterrupt(async () => {
    giveUp.abort();
    await client.cancelBatch(id);
  });
  const keep = (group: GroupView) => file.add({ ...group, made_with: madeWith }, giveUp.signal);
  const instances = rows.map(({ row }) => row);
  const [groups] = await Promise.all([
    follow(client, id, informative, keep),
    give(client, id, instances),
  ]);
  file.finish();
  const batch = await client.batch(id);
  if (!json) {
    process.stdout.write(formatGroups(groups, batch));
    process.stdout.write(`\n${file.lines} groups in ${file.path}\n`);
  }
  if (interrupt.came) return exitOf(interrupt.came);
  return batch.state === "complete" ? EXIT.done : EXIT.failed;
}

/** Adds the rows a part at a time; a batch that is over needs no more of them. */
async function give(client: ApiClient, id: string, rows: Row[]): Promise<void> {
  let at = 0;
  for (const instances of inParts(rows)) {
    const close = at + instances.length === rows.length;
    try {
      await client.addInstances(id, { instances, at, close });
    } catch (error) {
      if ((await client.batch(id)).state !== "running") return;
      throw error;
    }
    at += instances.length;
  }
}

async function follow(
  client: ApiClient,
  id: string,
  total: number,
  keep: (group: GroupView) => Promise<unknown>,
): Promise<EndedGroup[]> {
  const progress = new Progress(total);
  const waits = new WaitReason(client);
  const groups: EndedGroup[] = [];
  for (let over = false; !over; ) {
    const query = { after: groups.length, wait_ms: WAIT_MS, trajectories: "true" };
    const page = await client.batchGroups(id, { ...query, advantages: "grpo" });
    for (const group of page.groups) {
      await keep(group);
      const { id: name, instance, rewards, mean, std } = group;
      groups.push({ id: name, instance, rewards, mean, std });
    }
    over = page.over;
    const means = groups.map(({ mean }) => mean ?? 0);
    const mean = means.reduce((sum, value) => sum + value, 0) / Math.max(1, means.length);
    const status = await client.status();
    progress.show(groups.length, groups.length === 0 ? null : mean, status.stages);
    await waits.look(status);
  }
  progress.end();
  return groups;
}

/** What the closing table says of a group. */
type EndedGroup = Pick<GroupView, "id" | "instance" | "rewards" | "mean" | "std">;

export function formatGroups(groups: EndedGroup[], batch: BatchView): string {
  const rows = groups.map(({ id, instance, rewards, mean, std }) => [
    id,
    problemOf({ instance: instance as Row }),
    rewards.map((reward) => String(Number(reward.toFixed(2)))).join(" "),
    (mean ?? 0).toFixed(2),
    (std ?? 0).toFixed(2),
  ]);
  const table = formatTable(["group", "problem", "rewards", "mean", "std"], rows);
  const { complete, pruned, ended, failed } = batch.groups;
  const { kept, scored } = batch.lengths;
  const lengths =
    kept.mean === null ? "" : `; mean tokens ${kept.mean} kept, ${scored.mean} of all`;
  const groupsEnded = `${complete} groups complete, ${pruned} pruned, ${ended} ended, ${failed} failed`;
  const why = batch.error ? `\n${batch.error.message}` : "";
  return `${table}\n${batch.delivered} of ${batch.goal.groups} informative groups; ${groupsEnded}${lengths}${why}\n`;
}

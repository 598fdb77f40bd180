import type { BatchView } from "../protocol/batch-view.ts";
import type { GroupView } from "../protocol/group-view.ts";
import type { ApiClient } from "./api-client.ts";
import { EXIT } from "./command.ts";
import { Progress } from "./progress.ts";
import type { Row } from "./rows.ts";
import { problemOf } from "./run-report.ts";
import { formatTable } from "./table.ts";

const APPEND_ROWS = 500;
/** How long one request waits for the next group; the progress line is as fresh as that. */
const WAIT_MS = 250;

type Options = {
  id: string;
  groupSize: number;
  informative: number;
  /** What every rollout is made from, as `POST /v1/rollouts` takes it. */
  template: Record<string, unknown>;
  out: string;
  json: boolean;
};

/** Runs rows as a batch until so many groups are informative: progress, a table, and one group a line. */
export async function runBatch(client: ApiClient, rows: Row[], options: Options): Promise<number> {
  const { id, groupSize: num_samples, informative, template, out, json } = options;
  const goal = { groups: informative };
  await client.submitBatch({ ...template, id, num_samples, goal, instances: [], open: true });
  const onSignal = () => void client.cancelBatch(id).catch(() => {});
  process.once("SIGINT", onSignal);
  const [groups] = await Promise.all([follow(client, id, informative), give(client, id, rows)]);
  process.removeListener("SIGINT", onSignal);
  const batch = await client.batch(id);
  const lines = groups.map((group) => `${JSON.stringify(group)}\n`).join("");
  await Bun.write(out, lines);
  if (json) process.stdout.write(lines);
  else {
    process.stdout.write(formatGroups(groups, batch));
    process.stdout.write(`\n${groups.length} groups in ${out}\n`);
  }
  return batch.state === "complete" ? EXIT.done : EXIT.failed;
}

/** Adds the rows a part at a time; a batch that is over needs no more of them. */
async function give(client: ApiClient, id: string, rows: Row[]): Promise<void> {
  for (let at = 0; at < rows.length; at += APPEND_ROWS) {
    const instances = rows.slice(at, at + APPEND_ROWS);
    const close = at + APPEND_ROWS >= rows.length;
    try {
      await client.addInstances(id, { instances, at, close });
    } catch (error) {
      if ((await client.batch(id)).state !== "running") return;
      throw error;
    }
  }
}

async function follow(client: ApiClient, id: string, total: number): Promise<GroupView[]> {
  const progress = new Progress(total);
  const groups: GroupView[] = [];
  for (let over = false; !over; ) {
    const query = { after: groups.length, wait_ms: WAIT_MS, trajectories: "true" };
    const page = await client.batchGroups(id, { ...query, advantages: "grpo" });
    groups.push(...page.groups);
    over = page.over;
    const means = groups.map(({ mean }) => mean ?? 0);
    const mean = means.reduce((sum, value) => sum + value, 0) / Math.max(1, means.length);
    progress.show(groups.length, groups.length === 0 ? null : mean, (await client.status()).stages);
  }
  progress.end();
  return groups;
}

export function formatGroups(groups: GroupView[], batch: BatchView): string {
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

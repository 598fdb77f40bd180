import { resolve } from "node:path";
import type { RolloutView } from "../protocol/view.ts";
import { GOLDEN, type Golden, goldensOf } from "../tasks/golden.ts";
import { TASK_KINDS } from "../tasks/registry.ts";
import type { Trajectory } from "../trajectory/record.ts";
import type { ApiClient } from "./api-client.ts";
import type { MadeWith } from "./made-with.ts";
import type { Progress } from "./progress.ts";
import type { PlacedRow, Row } from "./rows.ts";
import type { WaitReason } from "./wait-reason.ts";

/** How long one request waits for the next finished rollout; the progress line is as fresh as that. */
const WAIT_MS = 250;

export type PlannedRollout = {
  row: number;
  /** Where the row is from. */
  place: string;
  sample: number;
  request: { id: string; instance: Row } & Record<string, unknown>;
};

/** One line of the result file. */
export type RolloutResult = RolloutView & {
  row: number;
  sample: number;
  instance: Row;
  /** The terms of its run. */
  made_with: MadeWith;
  /** Null when the rollout ended before its first turn. */
  trajectory: Trajectory | null;
};

/** What the closing table says of it; the trajectories of a long run would not fit into memory. */
export type EndedRollout = Omit<RolloutResult, "trajectory">;

type Following = {
  progress: Progress;
  waits: Pick<WaitReason, "look">;
  madeWith: MadeWith;
  /** Takes each result as it comes. */
  keep(result: RolloutResult): Promise<void>;
};

type Plan = {
  prefix: string;
  samples: number;
  seed: number;
  sampling: Record<string, number | undefined>;
  maxTurns: number | undefined;
  runLimitMs: number | undefined;
  image: string | undefined;
  /** Sample k of a row is what `GOLDEN` has at k, as far as the row's kind knows it. */
  golden?: boolean;
};

export function planRollouts(rows: PlacedRow[], plan: Plan): PlannedRollout[] {
  const { prefix, seed, golden = false } = plan;
  const template = rolloutTemplate(plan);
  return rows.flatMap(({ row: instance, place }, row) =>
    Array.from({ length: golden ? goldensOfRow(instance).length : plan.samples }, (_, sample) => ({
      row,
      place,
      sample,
      request: {
        ...template,
        id: `${prefix}-${row}-${sample}`,
        instance,
        sampling: { ...template.sampling, seed: seed + sample },
        ...(golden ? { golden: GOLDEN[sample] } : {}),
      },
    })),
  );
}

/** Of a kind that is not known here the service has to say what it can. */
function goldensOfRow({ data_source: source }: Row): readonly Golden[] {
  const kind = TASK_KINDS.find(({ dataSources }) => dataSources.includes(String(source)));
  const goldens = kind ? goldensOf(kind) : [];
  return goldens.length > 0 ? goldens : ["solution", "nothing"];
}

/** What all rollouts have in common, with the seed of the first. */
export function rolloutTemplate({ seed, sampling, maxTurns, runLimitMs, image }: Plan) {
  return {
    sampling: { ...sampling, seed },
    ...(maxTurns === undefined ? {} : { agent: { max_turns: maxTurns } }),
    ...(runLimitMs === undefined ? {} : { limits: { run_ms: runLimitMs } }),
    ...(image === undefined ? {} : { image }),
  };
}

/** What the flags of a run say of all its rollouts. @param rows the file that has them */
export function termsOf(plan: Plan, rows: string): MadeWith {
  const { sampling, seed, maxTurns: max_turns, runLimitMs: run_limit_ms, image } = plan;
  const golden = plan.golden || undefined;
  return { rows: resolve(rows), ...sampling, seed, max_turns, run_limit_ms, image, golden };
}

/** Whether a row's own solution earned 1, or no work at all 0. */
export function isGolden({ sample, reward }: Pick<RolloutResult, "sample" | "reward">): boolean {
  return reward === (GOLDEN[sample] === "nothing" ? 0 : 1);
}

/**
 * Follows the server's log of finished rollouts until all of `planned` are in it. Resolves with them in the order
 * of their rows.
 *
 * @param cursor the log's end before the first was submitted
 */
export async function collect(
  client: ApiClient,
  planned: PlannedRollout[],
  submitted: RolloutView[],
  cursor: number,
  { progress, waits, madeWith: made_with, keep }: Following,
): Promise<EndedRollout[]> {
  const waiting = new Map(planned.map((rollout) => [rollout.request.id, rollout]));
  const results: EndedRollout[] = [];
  const take = async (view: RolloutView) => {
    const rollout = waiting.get(view.id);
    if (!rollout || view.finished_at === null) return;
    waiting.delete(view.id);
    const { row, sample, request } = rollout;
    const ended = { row, sample, ...view, made_with, instance: request.instance };
    await keep({ ...ended, trajectory: await trajectoryOf(client, view.id) });
    results.push(ended);
  };
  // With a known --id-prefix some may have finished before.
  for (const view of submitted) await take(view);
  let after = cursor;
  while (waiting.size > 0) {
    const page = await client.list({ order: "finished", after, wait_ms: WAIT_MS, limit: 200 });
    for (const view of page.rollouts) await take(view);
    after = page.next;
    const status = await client.status();
    progress.show(results.length, meanReward(results), status.stages);
    await waits.look(status);
  }
  progress.end();
  return inOrder(results);
}

/** By row, and within a row by sample. */
export function inOrder(results: EndedRollout[]): EndedRollout[] {
  return results.toSorted((a, b) => a.row - b.row || a.sample - b.sample);
}

/** What the service's engines serve, as far as it has any: one pool has one model. */
export async function modelOf(client: ApiClient): Promise<MadeWith> {
  const { backends } = await client.backends();
  const models = new Set(backends.flatMap(({ model }) => model || []));
  return models.size === 0 ? {} : { model: [...models].toSorted().join(",") };
}

async function trajectoryOf(client: ApiClient, id: string): Promise<Trajectory | null> {
  try {
    return await client.trajectory(id);
  } catch (error) {
    if ((error as { code?: string }).code === "not_found") return null;
    throw error;
  }
}

export function meanReward(results: { reward: number | null }[]): number | null {
  const rewards = results.flatMap(({ reward }) => (reward === null ? [] : [reward]));
  if (rewards.length === 0) return null;
  return rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
}

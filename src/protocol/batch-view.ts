import type { ErrorBody } from "../errors.ts";
import { type BatchPlan, type BatchState, informativeShare } from "../jobs/batch.ts";
import { GROUP_STATES, type GroupState } from "../jobs/group.ts";
import type { BatchLength } from "../store/batch-store.ts";
import type { HandedOver } from "../store/remains.ts";
import type { BatchRow } from "../store/tables.ts";

/** Lengths of rollouts. Units: sampled tokens. */
export type LengthsView = {
  rollouts: number;
  mean: number | null;
  p50: number | null;
  p90: number | null;
  max: number | null;
};

export type BatchView = {
  id: string;
  state: BatchState;
  goal: { groups: number; tokens: number | null };
  /** Informative groups that were handed over. */
  delivered: number;
  /** Its groups, by state. */
  groups: Record<GroupState, number>;
  /** Informative groups that it did not need, kept for the next batch or left over. */
  surplus: number;
  /** Share of informative groups, as far as it is known. */
  informative_share: number;
  /**
   * What choosing did to the lengths: of what was kept, beside all that came to a reward. `thrown_away` are rollouts
   * that were ended before, or begun anew because they were too old.
   */
  lengths: { kept: LengthsView; scored: LengthsView; thrown_away: LengthsView };
  /** What it has handed over, in that order; only of one batch that is asked for and over. Stays when rollouts go. */
  handed_over?: HandedOver[];
  /** The file or URL that its instances are read from, and how many lines of it are. */
  source: { address: string; lines: number } | null;
  error: ErrorBody | null;
  created_at: string;
  finished_at: string | null;
};

type GroupCount = { state: GroupState; informative: number | null; count: number };

export function viewBatch(
  row: BatchRow,
  counts: GroupCount[],
  delivered: number,
  lengths: BatchLength[],
): BatchView {
  const { plan } = JSON.parse(row.options) as { plan: BatchPlan };
  const sum = (of: (count: GroupCount) => boolean) =>
    counts.filter(of).reduce((total, { count }) => total + count, 0);
  const decided = sum(({ informative }) => informative !== null);
  const informative = sum(({ informative }) => informative === 1);
  const of = (wanted: (length: BatchLength) => boolean) => viewLengths(lengths.filter(wanted));
  return {
    id: row.id,
    state: row.state,
    goal: plan.goal,
    delivered,
    groups: Object.fromEntries(
      GROUP_STATES.map((state) => [state, sum((count) => count.state === state)]),
    ) as Record<GroupState, number>,
    surplus: informative - delivered,
    informative_share: informativeShare({ informative, decided }, plan.expectedShare),
    lengths: {
      kept: of((each) => each.state === "succeeded" && each.delivered !== null && !each.replaced),
      scored: of(({ state }) => state === "succeeded"),
      thrown_away: of((each) => each.state === "cancelled" || isOutdated(each)),
    },
    source: viewSource(row.source),
    error: row.error === null ? null : JSON.parse(row.error),
    created_at: new Date(row.created_ms).toISOString(),
    finished_at: row.finished_ms === null ? null : new Date(row.finished_ms).toISOString(),
  };
}

function isOutdated({ state, replaced }: BatchLength): boolean {
  return state === "succeeded" && replaced === 1;
}

function viewSource(text: string | null): BatchView["source"] {
  if (text === null) return null;
  const { address, line } = JSON.parse(text);
  return { address, lines: line };
}

function viewLengths(lengths: BatchLength[]): LengthsView {
  const known = lengths.flatMap(({ tokens }) => (tokens === null ? [] : [tokens]));
  const sorted = known.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? null;
  const total = known.reduce((sum, tokens) => sum + tokens, 0);
  return {
    rollouts: lengths.length,
    mean: known.length === 0 ? null : Math.round(total / known.length),
    p50: at(0.5),
    p90: at(0.9),
    max: at(1),
  };
}

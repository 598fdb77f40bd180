import type { BatchGroup, BatchPlan } from "../jobs/batch.ts";
import type { Clock } from "../lib/clock.ts";
import type { Store } from "../store/store.ts";
import type { BatchRow } from "../store/tables.ts";
import type { EventFeed } from "./event-feed.ts";
import type { GroupSubmission } from "./group-parts.ts";
import type { Groups } from "./groups.ts";

export type BatchSubmission = {
  id: string;
  bodySha256: string;
  plan: BatchPlan;
  /** What its groups are made from besides their instance; kept for the instances that come later. */
  base: unknown;
  /** Who submitted it: its rollouts take their share of the slots from this client's. */
  client: string;
  groups: GroupSubmission[];
  /** More instances are to come. */
  open: boolean;
  /** Where they are read from, a path or URL; null where they are given. */
  source: string | null;
  /** A batch that is over and whose unfinished groups this one goes on with. */
  carryFrom: string | null;
  /** It goes on with what the last batch of this name has left. */
  series: string | null;
};

/** What the batches need of the scheduler. All but `operate` is for use inside a tick. */
export type BatchParts = {
  store: Store;
  clock: Clock;
  groups: Groups;
  feed: EventFeed;
  operate<T>(work: () => T): Promise<T>;
  afterCommit(effect: () => void): void;
  /** How many weight versions were announced after that moment. */
  versionsSince(ms: number): number;
  /** How many more rollouts of a client the pools up to RUN could take. */
  room(client: string): number;
  settings: { carryLimitMs: number; maxQueuedJobs: number };
};

/** A batch that is under way. */
export type LiveBatch = {
  row: BatchRow;
  plan: BatchPlan;
  client: string;
  /** Rollouts of each of its groups. */
  groupSize: number;
  /** Groups that have not been begun. */
  waiting: number;
  begun: Map<number, BatchGroup>;
  decided: number;
  informative: number;
  failed: number;
  delivered: number;
  tokens: number;
};

type BatchOptions = { plan: BatchPlan; client: string; base: { num_samples: number } };

/** A batch as its rows say it stands. */
export function loadBatch(
  { store, groups }: Pick<BatchParts, "store" | "groups">,
  row: BatchRow,
): LiveBatch {
  const { plan, client, base } = JSON.parse(row.options) as BatchOptions;
  const begun = store.batches.begun(row.seq).map((group): [number, BatchGroup] => {
    const { seq, position, informative } = group;
    const place = { seq, position: position ?? 0, startedMs: group.started_ms ?? 0 };
    const complete = informative === 1;
    const known = complete ? true : groups.informative(seq);
    return [seq, { ...place, informative: known, complete }];
  });
  const counts = { waiting: 0, decided: 0, informative: 0, failed: 0 };
  for (const { state, informative, count } of store.batches.groupCounts(row.seq)) {
    if (state === "waiting" || state === "carried") counts.waiting += count;
    if (state === "failed") counts.failed += count;
    if (informative !== null) counts.decided += count;
    if (informative === 1) counts.informative += count;
  }
  const { delivered, tokens } = store.batches.deliveries(row.seq);
  const groupSize = base.num_samples;
  return { row, plan, client, groupSize, begun: new Map(begun), ...counts, delivered, tokens };
}

export const BATCH_STATES = ["running", "complete", "exhausted", "failed", "cancelled"] as const;
/** `exhausted`: its instances did not bring the goal. */
export type BatchState = (typeof BATCH_STATES)[number];

/** What a batch is to bring, and how far it may go for that. */
export type BatchPlan = {
  goal: {
    /** Informative groups. */
    groups: number;
    /** Fewer groups do, once they have so many sampled tokens; null where that does not matter. */
    tokens: number | null;
  };
  /** Which informative groups count: the first that are complete, or the first that were begun. */
  keep: "cheapest" | "first_started";
  /**
   * What becomes of groups that are under way when the goal is reached: they end; their rollouts go on where they are;
   * wait at their turn, with their record alone; or are ended, and those of a group that is gone on with begin anew.
   */
  unfinished: "end" | "keep" | "park" | "restart";
  /** What a rollout may do for this batch; then it waits for the next one. Absent or null: as much as it likes. */
  maxTurns?: number | null;
  maxTokens?: number | null;
  /** Rollouts at once; null where the pools alone decide. */
  maxRollouts: number | null;
  /**
   * How many times the groups that are expected to be needed are under way: with 1 the least work is lost, with
   * more the goal is reached sooner, because fewer have to be waited for to their last rollout.
   */
  oversampling: number;
  /** Share of informative groups that is expected before there is any experience. */
  expectedShare: number;
  /** In weight versions since its begin; null where age does not matter. */
  maxStaleness: number | null;
  /** What is older: whole groups end, or only the rollouts do and are begun anew. */
  stale: "end" | "drop";
  /** With more failed groups than this the batch is given up. */
  maxFailedGroups: number;
};

/** A group of a batch that has been begun and is not delivered. */
export type BatchGroup = {
  seq: number;
  /** Order in which the batch begins its groups. */
  position: number;
  startedMs: number;
  /** Null as long as it is not certain; a complete group that is `false` here is none of the batch's any more. */
  informative: boolean | null;
  complete: boolean;
};

/** How much an expectation weighs against experience. Units: groups. */
const PRIOR_GROUPS = 4;

/** The share of informative groups, as far as it can be known. */
export function informativeShare(
  { informative, decided }: { informative: number; decided: number },
  expectedShare: number,
): number {
  return (informative + PRIOR_GROUPS * expectedShare) / (decided + PRIOR_GROUPS);
}

/**
 * How many more groups may be under way: as many as it takes, at the share of informative ones so far, times
 * `oversampling`. Where what is unfinished goes on in the next batch, nothing is begun in vain, and slots are the bound.
 */
export function groupsWanted(
  plan: BatchPlan,
  needed: number,
  begun: readonly BatchGroup[],
  share: number,
): number {
  if (needed <= 0) return 0;
  if (plan.unfinished !== "end") return Number.POSITIVE_INFINITY;
  const certain = begun.filter(({ informative }) => informative === true).length;
  const expected = Math.min(certain, needed) + Math.max(0, needed - certain) / share;
  return Math.max(0, Math.ceil(expected * plan.oversampling) - begun.length);
}

/** The groups to hand over now, in order. */
export function deliverable(
  { keep }: Pick<BatchPlan, "keep">,
  needed: number,
  begun: readonly BatchGroup[],
): BatchGroup[] {
  if (keep === "cheapest") return begun.filter(({ complete }) => complete).slice(0, needed);
  const inOrder = begun.toSorted((a, b) => a.position - b.position);
  const firstOpen = inOrder.findIndex(({ complete }) => !complete);
  return inOrder.slice(0, firstOpen < 0 ? undefined : firstOpen).slice(0, needed);
}

/**
 * The groups that nobody needs any more, because enough others are certain to be informative: those on which the
 * least work is lost, or those that were begun last.
 *
 * @param work what has gone into a group so far
 */
export function unneeded(
  plan: Pick<BatchPlan, "keep" | "unfinished" | "oversampling">,
  needed: number,
  begun: readonly BatchGroup[],
  work: (group: BatchGroup) => number,
): BatchGroup[] {
  if (plan.unfinished !== "end") return [];
  const certain = begun.filter(({ informative }) => informative === true);
  const wanted = Math.ceil(needed * plan.oversampling);
  // Where there are no others, nobody has to ask what each has cost.
  if (certain.length < wanted || begun.length <= wanted) return [];
  if (plan.keep === "first_started") {
    const last = certain.toSorted((a, b) => a.position - b.position)[wanted - 1]?.position ?? -1;
    return begun.filter(({ position }) => position > last);
  }
  const kept = new Set(
    certain
      .map((group) => ({ group, spent: group.complete ? Number.POSITIVE_INFINITY : work(group) }))
      .toSorted((a, b) => (a.spent === b.spent ? 0 : b.spent - a.spent))
      .slice(0, wanted)
      .map(({ group }) => group),
  );
  return begun.filter((group) => !kept.has(group));
}

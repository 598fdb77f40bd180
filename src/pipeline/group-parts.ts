import type { GroupPlan, GroupState } from "../jobs/group.ts";
import type { Clock } from "../lib/clock.ts";
import type { Store } from "../store/store.ts";
import type { GroupRow } from "../store/tables.ts";
import type { EventFeed } from "./event-feed.ts";
import type { MemberTemplate } from "./group-members.ts";
import type { Submission } from "./parts.ts";
import type { Pauses } from "./pauses.ts";

export type GroupSubmission = {
  id: string;
  bodySha256: string;
  instanceKey: string;
  /** The dataset row, as JSON. */
  instance: string;
  template: MemberTemplate;
  plan: GroupPlan;
};

/** What the groups need of the scheduler. All but `operate` is for use inside a tick. */
export type GroupParts = {
  store: Store;
  clock: Clock;
  operate<T>(work: () => T): Promise<T>;
  afterCommit(effect: () => void): void;
  /** @throws ServiceError `queue_full`, `shutting_down` when `count` more jobs can't be taken. */
  expectRoom(count: number): void;
  insertJob(submission: Submission): number;
  feed: EventFeed;
  /** The rollouts that wait for another batch. */
  pauses: Pick<Pauses, "isPaused" | "goOn" | "putAside">;
  /** Ends a job on the one ladder. */
  endJob(id: string): void;
};

/** What a batch hears of its groups, inside the tick in which it happens. */
export type GroupNews = {
  group: GroupRow;
  state: GroupState;
  /** Null until it is certain. */
  informative: boolean | null;
};

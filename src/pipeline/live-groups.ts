import { type Group, type GroupRules, rulesOf } from "../jobs/group.ts";
import { groupOf, toMember } from "../jobs/members.ts";
import type { Store } from "../store/store.ts";
import type { GroupRow, JobRow } from "../store/tables.ts";
import type { MemberTemplate } from "./group-members.ts";

/** A group that is under way. */
export type LiveGroup = {
  row: GroupRow;
  rules: GroupRules;
  template: MemberTemplate;
  group: Group;
  /** Its rollouts that are not over. */
  open: Map<number, { sample: number; jobId: string }>;
};

/** The groups that are under way, by their own number and by those of their rollouts that are not over. */
export class LiveGroups {
  readonly #store: Store;
  readonly #live = new Map<number, LiveGroup>();
  readonly #byJob = new Map<number, LiveGroup>();

  constructor(store: Store) {
    this.#store = store;
    for (const row of store.groups.running()) this.load(row);
  }

  all(): LiveGroup[] {
    return [...this.#live.values()];
  }

  get(seq: number): LiveGroup | undefined {
    return this.#live.get(seq);
  }

  ofJob(seq: number): LiveGroup | undefined {
    return this.#byJob.get(seq);
  }

  /** A group as its rows say it stands. */
  load(row: GroupRow): LiveGroup {
    const members = this.#store.groups.members(row.seq);
    const rules = rulesOf(JSON.parse(row.rules));
    const group = groupOf(members.map(toMember), rules);
    const live = { row, rules, template: JSON.parse(row.template), group, open: new Map() };
    this.#live.set(row.seq, live);
    for (const job of members) if (job.finished_ms === null) this.remember(live, job);
    return live;
  }

  remember(live: LiveGroup, { seq, id, sample }: Pick<JobRow, "seq" | "id" | "sample">): void {
    live.open.set(seq, { sample: sample ?? 0, jobId: id });
    this.#byJob.set(seq, live);
  }

  /** Nothing more is to be heard of this rollout. */
  forget(live: LiveGroup, seq: number): void {
    live.open.delete(seq);
    this.#byJob.delete(seq);
  }

  /** Nothing more is to be heard of the group. Returns the ids of the rollouts that it had open. */
  remove(live: LiveGroup): string[] {
    this.#live.delete(live.row.seq);
    const open = [...live.open];
    for (const [seq] of open) this.forget(live, seq);
    return open.map(([, { jobId }]) => jobId);
  }
}

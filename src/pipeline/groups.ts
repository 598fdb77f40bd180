import { type ErrorBody, errorBodyOf, ServiceError } from "../errors.ts";
import { begin, decide, type GroupState, isInformative, settle } from "../jobs/group.ts";
import { memberEnd, toMember } from "../jobs/members.ts";
import { clientOfGroup, sees } from "../jobs/owner.ts";
import type { GroupChange } from "../store/group-store.ts";
import type { GroupRow } from "../store/tables.ts";
import { freeId } from "./free-id.ts";
import { memberJob } from "./group-members.ts";
import type { GroupNews, GroupParts, GroupSubmission } from "./group-parts.ts";
import { type LiveGroup, LiveGroups } from "./live-groups.ts";
import type { Submitted } from "./parts.ts";
import { Waiters } from "./waiters.ts";

/**
 * Groups under way: it hears of each rollout that is over, inside the tick that books it, lets `jobs/group.ts`
 * decide, begins rollouts in the place of broken ones and ends those that nobody needs any more.
 */
export class Groups {
  readonly waiters = new Waiters();
  readonly #parts: GroupParts;
  readonly #live: LiveGroups;
  #tell: (news: GroupNews) => void = () => {};

  constructor(parts: GroupParts) {
    this.#parts = parts;
    this.#live = new LiveGroups(parts.store);
  }

  /** @param tell hears of groups that a batch has begun */
  listen(tell: (news: GroupNews) => void): void {
    this.#tell = tell;
  }

  /** How many rollouts of a group are under way. */
  openRollouts(seq: number): number {
    let open = 0;
    for (const job of this.#live.get(seq)?.open.keys() ?? []) {
      if (!this.#parts.pauses.isPaused(job)) open++;
    }
    return open;
  }

  /** The batch of a group that is under way. */
  batchOf(seq: number): number | null {
    return this.#live.get(seq)?.row.batch_seq ?? null;
  }

  /** Another batch goes on with its rollouts where they are. Inside a tick. */
  goOn(seq: number): void {
    for (const job of [...(this.#live.get(seq)?.open.keys() ?? [])]) this.#parts.pauses.goOn(job);
  }

  /** Its rollouts wait for another batch, with their records alone. Inside a tick. */
  putAside(seq: number): void {
    for (const job of [...(this.#live.get(seq)?.open.keys() ?? [])])
      this.#parts.pauses.putAside(job);
  }

  /** Whether it is certain yet what a group that is under way is worth. */
  informative(seq: number): boolean | null {
    const live = this.#live.get(seq);
    return live ? isInformative(live.group, live.rules) : null;
  }

  /** Goes on with what a former service left. Inside the first tick. */
  resume(): void {
    for (const live of this.#live.all()) {
      const members = this.#parts.store.groups.members(live.row.seq);
      const failed = members.findLast(({ state }) => state === "failed");
      this.#advance(live, failed ? toMember(failed).error : null);
    }
  }

  /** Accepts a group and begins all of its rollouts. Resolves when it is durable. */
  submit(submission: GroupSubmission): Promise<Submitted> {
    const { store, expectRoom } = this.#parts;
    return this.#parts.operate(() => {
      const { id, bodySha256, plan } = submission;
      const known = store.groups.byId(id);
      const { client = "" } = submission.template.row;
      if (known && (known.body_sha256 !== bodySha256 || !sees(client, clientOfGroup(known)))) {
        const mend = "use a new id for a new group";
        const message = `group "${id}" exists with another body`;
        throw new ServiceError("id_conflict", message, { field: "id", mend });
      }
      if (known) return { id, created: false };
      expectRoom(plan.numSamples);
      this.begin(this.insert(submission, null));
      return { id, created: true };
    });
  }

  /** Ends a group and its rollouts. Null when it does not exist. */
  cancel(id: string): Promise<GroupRow | null> {
    return this.#parts.operate(() => {
      const row = this.#parts.store.groups.byId(id);
      const live = row && this.#live.get(row.seq);
      if (live) this.end(live.row.seq, "cancelled", "the group was cancelled");
      return row && this.#parts.store.groups.byId(id);
    });
  }

  /** A rollout is over. Inside the tick that booked it. */
  jobEnded(seq: number): void {
    const live = this.#live.ofJob(seq);
    const row = live && this.#parts.store.jobBySeq(seq);
    if (!live || !row) return;
    this.#live.forget(live, seq);
    const member = toMember(row);
    live.group = settle(live.group, member.sample, memberEnd(member), live.rules);
    this.#advance(live, member.error);
  }

  /** Inside a tick. The group waits until it is begun. */
  insert(
    { plan, template, ...rest }: GroupSubmission,
    batch: { seq: number; position: number } | null,
  ): GroupRow {
    return this.#parts.store.groups.insert({
      ...{ ...rest, batch },
      template: JSON.stringify(template),
      rules: JSON.stringify(plan),
      createdMs: this.#parts.clock.nowMs(),
    });
  }

  /** Begins the rollouts of a group that waits, or that was parked. Inside a tick. */
  begin(row: GroupRow): void {
    const started_ms = row.started_ms ?? this.#parts.clock.nowMs();
    const started = { state: "running", started_ms } as const;
    this.#parts.store.groups.update(row.seq, started);
    this.#advance(this.#live.load({ ...row, ...started }), null);
  }

  /** Ends a group that is under way, and its rollouts. Inside a tick. */
  end(seq: number, state: "ended" | "cancelled", why: string): void {
    const live = this.#live.get(seq);
    if (live)
      this.#finish(live, state, errorBodyOf(state === "ended" ? "not_needed" : "cancelled", why));
  }

  /**
   * Begins anew, for the same samples, the rollouts that were begun too long ago, whether they are over or not. Inside
   * a tick. Returns when the oldest that stands now was begun.
   */
  renew(seq: number, isTooOld: (startedMs: number) => boolean): number {
    const { store, clock, endJob } = this.#parts;
    let oldestMs = clock.nowMs();
    const live = this.#live.get(seq);
    if (!live) return oldestMs;
    // The last one of a sample stands for it.
    const standing = new Map(store.groups.members(seq).map((job) => [job.sample ?? 0, job]));
    for (const [sample, job] of standing) {
      const { state } = live.group.seats[sample] ?? {};
      if (state !== "open" && state !== "scored") continue;
      if (!isTooOld(job.created_ms)) {
        oldestMs = Math.min(oldestMs, job.created_ms);
        continue;
      }
      this.#live.forget(live, job.seq);
      if (state === "open") endJob(job.id);
      this.#begin(live, sample);
    }
    this.#advance(live, null);
    return oldestMs;
  }

  /** It belongs to another batch from now on. Inside a tick. */
  move(seq: number, batchSeq: number): void {
    const live = this.#live.get(seq);
    if (live) live.row = { ...live.row, batch_seq: batchSeq };
  }

  /** Keeps a group with what it has, and ends its open rollouts until it is begun again. Inside a tick. */
  park(seq: number): void {
    const live = this.#live.get(seq);
    if (!live) return;
    this.#parts.store.groups.update(seq, { state: "carried" });
    this.#dismiss(live);
  }

  /** Does what is certain now: begins what is missing, or ends the group. */
  #advance(live: LiveGroup, lastError: ErrorBody | null): void {
    const decision = decide(live.group, live.rules, lastError);
    switch (decision.type) {
      case "goes_on":
        for (const sample of decision.vacant) this.#begin(live, sample);
        this.#tell({
          group: live.row,
          state: "running",
          informative: this.informative(live.row.seq),
        });
        break;
      case "complete":
        this.#finish(live, "complete", null, decision.informative);
        break;
      case "pruned":
        this.#finish(live, "pruned", null, false);
        break;
      case "failed": {
        const { why, error } = decision;
        const message = `the group can't be completed, because ${why}: ${error.message}`;
        this.#finish(live, "failed", { ...error, message });
      }
    }
  }

  #begin(live: LiveGroup, sample: number): void {
    const { store } = this.#parts;
    const { row, group, template } = live;
    const tries = group.seats[sample]?.tries ?? 0;
    const wanted = tries === 0 ? `${row.id}-${sample}` : `${row.id}-${sample}-r${tries}`;
    const id = freeId(wanted, (taken) => store.jobById(taken) !== null);
    const place = { id, sample, tries, numSamples: live.rules.numSamples };
    const seq = this.#parts.insertJob(memberJob(row, template, place));
    live.group = begin(group, sample);
    this.#live.remember(live, { seq, id, sample });
  }

  #finish(
    live: LiveGroup,
    state: Exclude<GroupState, "waiting" | "running" | "carried">,
    error: ErrorBody | null,
    informative: boolean | null = null,
  ): void {
    const { store, clock, afterCommit, feed } = this.#parts;
    const change: GroupChange = { state, finished_ms: clock.nowMs() };
    if (error) change.error = JSON.stringify(error);
    if (informative !== null) change.informative = informative ? 1 : 0;
    store.groups.update(live.row.seq, change);
    store.groupEvents.groupEnded(live.row, state);
    this.#dismiss(live);
    if (informative !== null) this.#learn(live, informative);
    afterCommit(() => this.waiters.notify(live.row.id));
    afterCommit(() => feed.publishEnd({ kind: "group", state, informative }));
    this.#tell({ group: { ...live.row, ...change }, state, informative });
  }

  /** Keeps what the group says about how hard its instance is. */
  #learn({ row, group }: LiveGroup, informative: boolean): void {
    const scored = group.seats.flatMap((seat) => (seat.state === "scored" ? [seat] : []));
    this.#parts.store.instances.learn({
      key: row.instance_key,
      dataSource: row.instance_key.slice(0, row.instance_key.indexOf(":")),
      informative,
      rewards: scored.map(({ reward }) => reward),
      tokens: scored.reduce((sum, { length }) => sum + (length.tokens ?? 0), 0),
      nowMs: this.#parts.clock.nowMs(),
    });
  }

  /** Nothing more is heard of its rollouts, and those that are open are ended. */
  #dismiss(live: LiveGroup): void {
    for (const jobId of this.#live.remove(live)) this.#parts.endJob(jobId);
  }
}

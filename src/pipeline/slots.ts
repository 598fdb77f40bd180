import type { Backend } from "../inference/engine.ts";
import { type Job, type Stage, stageLimitMs } from "../jobs/job.ts";
import { transition } from "../jobs/transitions.ts";
import type { SandboxHandle } from "../sandbox/sandbox.ts";
import type { JobResult } from "../store/job-table.ts";
import { toJob } from "../store/rows.ts";
import type { WorkRow } from "../store/tables.ts";
import { FairShare } from "./fair-share.ts";
import type { ImageGate } from "./image-gate.ts";
import type { Parking } from "./parking.ts";
import type { ActiveJob, SchedulerParts } from "./parts.ts";
import type { Pauses } from "./pauses.ts";
import type { Pool } from "./pool.ts";
import type { Suspects } from "./suspects.ts";
import type { WarmPool } from "./warm-pool.ts";

type SlotParts = Pick<SchedulerParts, "store" | "clock" | "backends" | "settings" | "room"> & {
  pools: Record<Stage, Pool>;
  active: Map<string, ActiveJob>;
  parking: Parking;
  pauses: Pauses;
  images: ImageGate;
  warm: WarmPool;
  suspects: Suspects;
  /** Of a job's change, once it is durable. */
  tell(job: Job): void;
};

/** Whether a job's work in its stage is bounded as a sandbox's: its start in INIT, what it runs in EVAL. */
function occupies({
  stage,
  uses_sandbox,
  eval_from_record,
}: Pick<WorkRow, "stage" | "uses_sandbox" | "eval_from_record">): boolean {
  if (stage === "eval")
    return eval_from_record === 2 || (eval_from_record === 0 && uses_sandbox === 1);
  return uses_sandbox === 1;
}

const LATER_FIRST: Record<Stage, number> = { eval: 0, run: 1, init: 2 };

/** Which waiting jobs get the free slots; inside a tick only. */
export class Slots {
  readonly #parts: SlotParts;
  readonly #share = new FairShare();

  constructor(parts: SlotParts) {
    this.#parts = parts;
  }

  /** Later stages first: what has begun is finished before more is begun. */
  fill(): void {
    if (this.#holdForOne()) return;
    // Jobs that have to wait for their image may have kept others out of the list.
    while (this.#fillStage("eval")) {}
    this.#fillStage("run");
    if (this.#parts.room?.forWork() === false) return;
    while (this.#fillStage("init")) {}
    const { starting, ahead } = this.#sandboxesAhead();
    this.#parts.warm.tend(starting, this.#parts.settings.maxSandboxesAhead - ahead);
  }

  /** A job that has to be alone waits until nothing is active. Returns whether nothing else is to start. */
  #holdForOne(): boolean {
    const { suspects, store, active, backends, images } = this.#parts;
    const alone = suspects.alone();
    if (alone.length === 0) return false;
    if (alone.some((id) => active.has(id))) return true;
    const ready = alone
      .flatMap((id) => store.workById(id) ?? [])
      .filter((row) => row.state === "pending" && row.not_before_ms === null)
      .filter((row) => row.stage !== "run" || !row.needs_backend || backends.available());
    const [row] = ready.toSorted((a, b) => LATER_FIRST[a.stage] - LATER_FIRST[b.stage]);
    if (!row || active.size > 0) return row !== undefined;
    const next = this.#needsImage(row) ? images.enter(row.image ?? "", row.stage) : "start";
    if (next !== "wait") this.#claim(row, next === "fetch");
    return true;
  }

  /** Returns whether more jobs are barred than before. */
  #fillStage(stage: Stage): boolean {
    const { store, pools, images, backends, active, suspects } = this.#parts;
    const limit = pools[stage].freeSlots() + images.fetching(stage);
    if (limit <= 0) return false;
    let starts = this.#sandboxesAllowed(stage, limit);
    const sandbox = starts > 0;
    const backend = stage !== "run" || backends.available();
    const { barred } = images;
    const filter = { stage, limit, sandbox, backend, barred };
    for (const row of this.#share.candidates(store.queue, active, filter)) {
      if (occupies(row) && starts <= 0) continue;
      if (!suspects.mayJoin(row.id, active)) continue;
      const next = this.#needsImage(row) ? images.enter(row.image ?? "", stage) : "start";
      if (next === "wait") continue;
      // Each that is placed may take the room of the next.
      if (stage === "run" && row.needs_backend && !backends.available()) continue;
      if (next === "start" && occupies(row)) starts--;
      this.#claim(row, next === "fetch");
    }
    return stage !== "run" && images.barred.length > barred.length;
  }

  /** Whether the stage starts a sandbox. EVAL's fresh one may have been started while RUN ended. */
  #needsImage(row: WorkRow): boolean {
    if (row.stage === "init") return row.uses_sandbox === 1;
    const startsFresh = row.stage === "eval" && row.eval_from_record === 2;
    return startsFresh && !this.#parts.parking.has(row.id);
  }

  /**
   * How many more rollouts of a client would find a slot of RUN, or be made ready for one. What others have waiting
   * counts nothing: who has much may not keep the rest from having their share.
   */
  roomAheadOfRun(client: string): number {
    const { pools, settings, store } = this.#parts;
    const starting = settings.pools.init.slots - pools.init.freeSlots();
    const room = pools.run.freeSlots() + settings.maxSandboxesAhead - starting;
    return room - store.batches.pendingAheadOfRun(client, Math.max(1, room));
  }

  /** How many more jobs of a stage may do there what costs the node a sandbox's work. */
  #sandboxesAllowed(stage: Stage, limit: number): number {
    if (stage === "init") return this.#sandboxStartsAllowed();
    return stage === "eval" ? this.#evalSandboxesAllowed() : limit;
  }

  /** Submitted work has its time by the processor: more at once than there are of these only wait for each other. */
  #evalSandboxesAllowed(): number {
    let working = 0;
    for (const { job, row } of this.#parts.active.values()) {
      if (job.stage === "eval" && occupies({ ...row, stage: "eval" })) working++;
    }
    return this.#parts.settings.evalSandboxes - working;
  }

  /** Few start at once, because a start is heavy on the node; and not too many wait without running. */
  #sandboxStartsAllowed(): number {
    const { startsAtOnce, maxSandboxesAhead } = this.#parts.settings;
    const { starting, ahead } = this.#sandboxesAhead();
    return Math.min(startsAtOnce - starting, maxSandboxesAhead - ahead);
  }

  #sandboxesAhead(): { starting: number; ahead: number } {
    let starting = 0;
    for (const { job, usesSandbox, fetching } of this.#parts.active.values()) {
      if (usesSandbox && job.stage === "init" && !fetching) starting++;
    }
    return { starting, ahead: starting + this.#parts.parking.waitingFor("run") };
  }

  /**
   * Has a job that has ended a stage begin the next one at once, in one change of its row. False where it has to wait
   * like any other: where jobs wait for that stage, or more may come in this tick than it has slots, `fill` decides.
   *
   * @param next the job as it would wait
   * @param comers how many jobs may come to the stage in this tick
   */
  goOn(
    { row, job: from }: ActiveJob,
    next: Job,
    result: JobResult,
    handle: SandboxHandle | null,
    comers: number,
  ): boolean {
    const { store, pools, backends, tell } = this.#parts;
    const { stage } = next;
    const advances = next.state === "pending" && stage !== from.stage && stage !== "init";
    if (!advances || store.counts.waiting(stage) > 0 || pools[stage].freeSlots() < comers) {
      return false;
    }
    const startsFresh = stage === "eval" && row.eval_from_record === 2 && handle === null;
    const isFull = occupies({ ...row, stage }) && this.#sandboxesAllowed(stage, 1) <= 0;
    if (isFull || startsFresh || (stage === "run" && row.needs_backend && !backends.available()))
      return false;
    tell(next);
    this.#start({ ...row, outcome: result.outcome ?? row.outcome }, from, next, result, handle);
    return true;
  }

  #claim(row: WorkRow, fetching: boolean): void {
    const waiting = toJob(row);
    this.#start(row, waiting, waiting, {}, this.#parts.parking.take(row.id), fetching);
  }

  /** @param from the job as its row has it, and `waiting` as it waits */
  #start(
    row: WorkRow,
    from: Job,
    waiting: Job,
    result: JobResult,
    handle: SandboxHandle | null,
    fetching = false,
  ): void {
    const { store, clock, pauses, warm, pools, active, tell } = this.#parts;
    const job = transition(waiting, { type: "stage_started" }, clock.nowMs());
    const needsBackend = job.stage === "run" && row.needs_backend === 1;
    const backend = needsBackend ? this.#placeOf(row) : null;
    const left = backend ? { ...result, backendId: backend.id } : result;
    const image = row.image ?? "";
    const startsSandbox = job.stage === "init" && row.uses_sandbox === 1;
    const ready = startsSandbox && !fetching ? warm.take(image) : null;
    const alive = pauses.take(job.id);
    if (alive) {
      const goesOn = { ...alive, job, backendId: backend?.id ?? null };
      goesOn.worker.jobIds.add(job.id);
      pauses.send(goesOn, pauses.allowance(row.group_seq));
      store.updateJob(row.seq, from, job, left);
      tell(job);
      active.set(job.id, goesOn);
      return;
    }
    const isRun = job.stage === "run";
    const worker = pools[job.stage].start({
      type: "start",
      jobId: job.id,
      attempt: job.attempt,
      stage: job.stage,
      limitMs: stageLimitMs(job),
      leftMs: (job.stageDeadlineMs ?? job.deadlineMs) - clock.nowMs(),
      taskKind: row.task_kind,
      instance: row.instance,
      options: row.options,
      handle,
      warm: ready,
      backend,
      outcome: row.outcome,
      allowance: isRun ? pauses.allowance(row.group_seq) : null,
      record: isRun ? store.paused.record(row.seq) : null,
    });
    store.updateJob(row.seq, from, job, left);
    tell(job);
    active.set(job.id, {
      seq: row.seq,
      client: row.client,
      row,
      job,
      usesSandbox: row.uses_sandbox === 1,
      image,
      fetching,
      worker,
      backendId: backend?.id ?? null,
      handles: [handle, ready?.handle ?? null].filter((it) => it !== null),
      renewals: 0,
      endAskedMs: null,
      killed: false,
    });
  }

  /** Rollouts of the same instance are a group. */
  #placeOf(row: WorkRow): Backend {
    const { id: jobId, seq: ordinal, backend_id: preferredId, instance, group_seq } = row;
    const group = group_seq === null ? Bun.hash(instance).toString(36) : `group ${group_seq}`;
    return this.#parts.backends.acquire({ jobId, ordinal, group, preferredId });
  }
}

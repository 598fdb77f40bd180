import { expect } from "bun:test";
import type { ErrorBody } from "../../src/errors.ts";
import type { StartStage } from "../../src/pipeline/messages.ts";
import type { Submission } from "../../src/pipeline/parts.ts";
import { toJob } from "../../src/store/rows.ts";
import type { FakeThread } from "../support/fake-thread.ts";
import { World } from "./world.ts";

const STEPS = 120;
/** How the system's clock was set while no service ran. */
const JUMPS_MS = [0, 0, 0, 3_600_000, -3_600_000];

const FAILURES: ErrorBody[] = [
  { code: "sandbox_died", message: "gone", boundary: "sandbox", retryable: true },
  { code: "engine_timeout", message: "slow", boundary: "engine", retryable: true },
  { code: "oom", message: "much", boundary: "policy", retryable: false },
];

/** One life of a service, all of it drawn from a seed: what clients ask, what fails, and when time passes. */
export class Schedule implements Disposable {
  readonly #world = new World();
  readonly #acknowledged = new Map<string, Submission>();
  /** Positions and ids as a reader of the log of finished jobs sees them. */
  readonly #log: { position: number; id: string }[] = [];
  /** What a job was when it was first seen to be over. */
  readonly #final = new Map<string, string>();
  #cursor = 0;
  /** Answers of old attempts in this life of the service; each has to be refused. */
  #zombies = 0;
  #state: number;

  constructor(seed: number) {
    this.#state = seed * 2654435761 + 1;
  }

  async run(): Promise<void> {
    for (let step = 0; step < STEPS; step++) {
      await this.#act();
      this.#check();
    }
    await this.#finish();
    this.#checkEnd();
  }

  [Symbol.dispose](): void {
    this.#world[Symbol.dispose]();
  }

  #below(limit: number): number {
    // xorshift32: small, and the same on every machine.
    let x = this.#state | 0 || 1;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return (x >>> 0) % limit;
  }

  #pick<T>(from: readonly T[]): T | undefined {
    return from[this.#below(Math.max(1, from.length))];
  }

  async #act(): Promise<void> {
    const world = this.#world;
    const roll = this.#below(100);
    if (roll < 18) await this.#submit();
    else if (roll < 62) this.#answer();
    else if (roll < 70) {
      const id = this.#pick([...this.#acknowledged.keys()]);
      if (id) await world.scheduler.cancel(id);
    } else if (roll < 74) this.#pick(world.threads())?.crash("simulated");
    else if (roll < 76) this.#zombie();
    else if (roll < 80) await world.scheduler.renew([...this.#acknowledged.keys()]);
    else if (roll < 82) {
      await world.kill(this.#pick(JUMPS_MS) as number);
      this.#zombies = 0;
    } else if (roll < 90) this.#read();
    else await world.advance(this.#below(this.#below(4) === 0 ? 20_000 : 800));
    await world.settle();
  }

  async #submit(): Promise<void> {
    const known = this.#pick([...this.#acknowledged.values()]);
    const again = known && this.#below(4) === 0 ? [known] : [];
    const fresh = Array.from({ length: 1 + this.#below(4) }, () => this.#newJob());
    const submitted = await this.#world.submit([...again, ...fresh]);
    if (!submitted) return;
    expect(submitted.map(({ created }) => created)).toEqual([
      ...again.map(() => false),
      ...fresh.map(() => true),
    ]);
    for (const submission of fresh) this.#acknowledged.set(submission.job.id, submission);
  }

  #newJob(): Submission {
    const sandbox = this.#below(2) === 0;
    const totalMs = this.#below(3) === 0 ? 3000 : 1_000_000;
    const id = `j${this.#below(2 ** 30)}-${this.#acknowledged.size}`;
    const limits = { initMs: 4000, runMs: 8000, evalMs: 4000, totalMs };
    const numAttempts = 1 + this.#below(3);
    return {
      job: { id, limits, numAttempts, evalFromRecord: this.#below(2) === 0 },
      row: {
        ...{ bodySha256: id, taskKind: "fake", instance: "{}", options: "{}" },
        ...{ usesSandbox: sandbox, needsBackend: sandbox, image: null },
        client: `client ${this.#below(3)}`,
        priority: this.#below(5) - 2,
        ...(this.#below(4) === 0 ? { leaseMs: 5000 } : {}),
      },
    };
  }

  /** A thread answers one of its stages, as a worker would. */
  #answer(): void {
    const next = this.#pick(this.#world.outstanding());
    if (!next) return;
    const { thread, start } = next;
    if (this.#world.scheduler.active.get(start.jobId)?.job.ending && this.#below(2) === 0) {
      const { jobId, attempt, stage } = start;
      thread.emit({ type: "slot_freed", jobId, attempt, stage });
      return;
    }
    const failure = this.#below(4) === 0 ? this.#pick(FAILURES) : undefined;
    if (failure) {
      if (start.handle) this.#world.alive.delete(start.handle.id);
      thread.finish(start, { error: failure, trajectory: this.#below(2) ? "[]" : null });
    } else this.#succeed(thread, start);
  }

  #succeed(thread: FakeThread, start: StartStage): void {
    const submission = this.#acknowledged.get(start.jobId);
    const keeps = submission?.row.usesSandbox && start.stage === "init";
    if (start.handle && start.stage !== "init") this.#world.alive.delete(start.handle.id);
    const handle = keeps ? this.#world.sandbox(`${start.jobId}.${start.attempt}`) : null;
    thread.finish(start, { handle, trajectory: start.stage === "run" ? "[1]" : null });
  }

  /** An answer for an attempt that is long over, with a sandbox that nobody knows of. */
  #zombie(): void {
    const entry = this.#pick([...this.#world.scheduler.active.values()]);
    const thread = this.#pick(this.#world.threads());
    if (!entry || !thread) return;
    const { id, attempt, stage } = entry.job;
    const verdict = { reward: 1, rule: "zombie", reason: "It is not so." };
    const handle = this.#world.sandbox(`zombie ${this.#below(2 ** 30)}`);
    const old = { jobId: id, attempt: attempt - 1, stage, error: null, outcome: null } as const;
    thread.emit({ type: "stage_finished", ...old, handle, trajectory: "zombie", verdict });
    this.#zombies++;
  }

  #read(): void {
    const limit = 1 + this.#below(5);
    const page = this.#world.store.list({ after: this.#cursor, limit, order: "finished" });
    for (const row of page.rows)
      this.#log.push({ position: row.finished_seq as number, id: row.id });
    this.#cursor = page.next;
  }

  /** What holds after every step. */
  #check(): void {
    const { store, scheduler } = this.#world;
    const rows = store.list({ after: 0, limit: 10_000, order: "submitted" }).rows;
    const active = rows.filter(({ state }) => state === "active").map(({ id }) => id);
    expect(active.toSorted()).toEqual([...scheduler.active.keys()].toSorted());
    expect(scheduler.staleAnswers).toBeGreaterThanOrEqual(this.#zombies);
    const unfinished = rows.filter(({ finished_ms }) => finished_ms === null);
    expect(scheduler.unfinished).toBe(unfinished.length);
    const places: Record<string, number> = {};
    for (const { stage, state } of unfinished) {
      places[`${stage} ${state}`] = (places[`${stage} ${state}`] ?? 0) + 1;
    }
    const counted = store.counts.list().map((it) => [`${it.stage} ${it.state}`, it.count]);
    expect(Object.fromEntries(counted)).toEqual(places);
    for (const row of rows) {
      expect(row.reward !== null).toBe(row.state === "succeeded");
      if (row.finished_ms === null) {
        // Wherever the clock was set to, nobody has longer than he was given.
        const { limits, deadlineMs } = toJob(row);
        expect(deadlineMs - this.#world.clock.ms).toBeLessThanOrEqual(limits.totalMs);
        continue;
      }
      const now = JSON.stringify(row);
      const before = this.#final.get(row.id) ?? now;
      expect(now).toBe(before);
      this.#final.set(row.id, now);
    }
    for (const stage of ["init", "run", "eval"] as const) {
      expect(scheduler.pools[stage].freeSlots()).toBeWithin(0, 5);
    }
  }

  /** The faults stop, and everything that was accepted comes to its end. */
  async #finish(): Promise<void> {
    for (let round = 0; this.#world.scheduler.unfinished > 0; round++) {
      if (round > 500) throw new Error("jobs are left that never end");
      for (const { thread, start } of this.#world.outstanding()) this.#succeed(thread, start);
      await this.#world.advance(500);
      this.#check();
    }
  }

  #checkEnd(): void {
    const { store } = this.#world;
    for (let before = -1; before !== this.#cursor; ) {
      before = this.#cursor;
      this.#read();
    }
    const ids = this.#log.map(({ id }) => id);
    expect(ids.toSorted()).toEqual([...this.#acknowledged.keys()].toSorted());
    const positions = this.#log.map(({ position }) => position);
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
    expect(new Set(positions).size).toBe(positions.length);
    for (const id of ids) {
      const row = store.jobById(id);
      expect(["succeeded", "failed", "cancelled"]).toContain(row?.state as string);
      expect(row?.attempt).toBeLessThan(200);
    }
    expect([...this.#world.alive]).toEqual([]);
  }
}

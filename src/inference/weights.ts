import { ServiceError } from "../errors.ts";
import { MAX_TIMER_MS } from "../lib/clock.ts";
import type { TurnDesk } from "./turn-desk.ts";

/**
 * What becomes of calls that run when the weights are about to change: they end by themselves, they are ended
 * and gone on with under the new weights, or they go on across the change.
 */
export const PAUSE_MODES = ["drain", "abort", "keep"] as const;
export type PauseMode = (typeof PAUSE_MODES)[number];

export type Announced = { version: string; announcedMs: number };

/** A pause, and when whoever made it is taken for gone: so long after it was heard of last; 0 once it has lapsed. */
export type Pause = { mode: PauseMode; untilMs: number; leaseMs: number };

/** Long enough to save a checkpoint as well; a pause that is to last is made again before. */
export const PAUSE_LEASE_MS = 3_600_000;

/** What of it is durable. */
export type WeightsRecord = {
  /** Oldest first. */
  announced(): Announced[];
  announce(version: Announced): void;
  /** Also one that has lapsed. */
  paused(): Pause | null;
  setPaused(pause: Pause | null): void;
};

type WeightsOptions = {
  desk: TurnDesk;
  record: WeightsRecord;
  clock: { nowMs(): number };
  onLapse?: (pause: Pause) => void;
};

/**
 * Which weights the backends have, as the trainer announces it. Between `pause` and `announce`, while it
 * puts new ones into the engines, calls wait; they do not fail. A trainer that is not heard of for the time of its lease
 * is taken for dead: calls go on, and as nobody knows what it has put there, what is sampled then has no version.
 */
export class Weights implements Disposable {
  readonly #desk: TurnDesk;
  readonly #record: WeightsRecord;
  readonly #clock: { nowMs(): number };
  readonly #announced: Announced[];
  readonly #onLapse: (pause: Pause) => void;
  #pause: Pause | null;
  #lapsed = false;
  #timer: Timer | undefined;

  /**
   * A pause outlives a restart: the trainer may still be at it. Its lease begins anew, because nobody could be heard of
   * meanwhile, and the clock may have been set.
   */
  constructor({ desk, record, clock, onLapse = () => {} }: WeightsOptions) {
    this.#desk = desk;
    this.#record = record;
    this.#clock = clock;
    this.#announced = record.announced();
    this.#onLapse = onLapse;
    const left = record.paused();
    this.#pause =
      left && left.leaseMs > 0 ? { ...left, untilMs: clock.nowMs() + left.leaseMs } : left;
    desk.weightVersion = this.version;
    if (!this.#pause) return;
    record.setPaused(this.#pause);
    desk.pause(this.#pause.mode);
    this.#await(this.#pause);
  }

  /** Null also where nobody knows, because a pause has lapsed. */
  get version(): string | null {
    return this.#lapsed ? null : (this.#announced.at(-1)?.version ?? null);
  }

  get paused(): PauseMode | null {
    return this.#lapsed ? null : (this.#pause?.mode ?? null);
  }

  /** Whether calls went on because whoever paused them was not heard of any more. */
  get lapsed(): boolean {
    return this.#lapsed;
  }

  /** How things are, with the last versions, the newest first. */
  view(limit: number) {
    const { version, paused, lapsed } = this;
    const pausedUntilMs = paused === null ? null : (this.#pause?.untilMs ?? null);
    const history = this.#announced.slice(-limit).reverse();
    const { granted: running, waiting } = this.#desk;
    return { version, paused, pausedUntilMs, lapsed, running, waiting, history };
  }

  /** How many versions were announced after that moment. */
  announcedAfter(ms: number): number {
    return this.#announced.filter(({ announcedMs }) => announcedMs > ms).length;
  }

  /** How many versions were announced since; null for one that never was. */
  ageOf(version: string): number | null {
    const index = this.#announced.findLastIndex((known) => known.version === version);
    return index < 0 ? null : this.#announced.length - 1 - index;
  }

  /**
   * No further call begins. Resolves when none runs any more, or with `keep` at once.
   *
   * @param leaseMs after as long without another word it lapses
   * @throws ServiceError `not_ready` where calls still run after `waitMs`, and the pause goes on; the abort
   * reason of `signal`
   */
  async pause(
    mode: PauseMode,
    waitMs: number,
    signal: AbortSignal,
    leaseMs = PAUSE_LEASE_MS,
  ): Promise<void> {
    this.#set({ mode, untilMs: this.#clock.nowMs() + leaseMs, leaseMs });
    this.#desk.pause(mode);
    if (mode === "keep" || (await this.#desk.quiet(waitMs, signal))) return;
    const message = `${this.#desk.granted} calls still run after ${waitMs} ms; no further ones begin`;
    const mend = "send it again to wait on, or POST /v1/weights/resume to give it up";
    throw new ServiceError("not_ready", message, { mend });
  }

  /** The engines have these weights now: whoever waited goes on with them. */
  announce(version: string): void {
    if (version !== this.#announced.at(-1)?.version) {
      const announced = { version, announcedMs: this.#clock.nowMs() };
      this.#record.announce(announced);
      this.#announced.push(announced);
      this.#desk.reweigh(version);
    }
    this.resume();
  }

  /** Goes on with the weights that were announced last. */
  resume(): void {
    const { lapsed } = this;
    this.#set(null);
    if (lapsed && this.version !== null) this.#desk.reweigh(this.version);
    this.#desk.resume();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #set(pause: Pause | null): void {
    this.#lapsed = false;
    this.#pause = pause;
    this.#record.setPaused(pause);
    clearTimeout(this.#timer);
    if (pause) this.#await(pause);
  }

  #await(pause: Pause): void {
    const leftMs = pause.untilMs - this.#clock.nowMs();
    if (leftMs <= 0) this.#lapse(pause);
    else {
      // Before a restart the clock may have been far ahead.
      const waitMs = Math.min(leftMs, MAX_TIMER_MS);
      this.#timer = setTimeout(() => this.#await(pause), waitMs).unref();
    }
  }

  #lapse(pause: Pause): void {
    this.#lapsed = true;
    // Also for the next start, whatever its clock says.
    this.#record.setPaused({ ...pause, untilMs: 1, leaseMs: 0 });
    this.#desk.reweigh(null);
    this.#desk.resume();
    this.#onLapse(pause);
  }
}

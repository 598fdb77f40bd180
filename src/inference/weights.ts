import { ServiceError } from "../errors.ts";
import type { TurnDesk } from "./turn-desk.ts";

/**
 * What becomes of calls that run when the weights are about to change: they end by themselves, they are ended
 * and gone on with under the new weights, or they go on across the change.
 */
export const PAUSE_MODES = ["drain", "abort", "keep"] as const;
export type PauseMode = (typeof PAUSE_MODES)[number];

export type Announced = { version: string; announcedMs: number };

/** What of it is durable. */
export type WeightsRecord = {
  /** Oldest first. */
  announced(): Announced[];
  announce(version: Announced): void;
  paused(): PauseMode | null;
  setPaused(mode: PauseMode | null): void;
};

type WeightsOptions = { desk: TurnDesk; record: WeightsRecord; clock: { nowMs(): number } };

/**
 * Which weights the backends have, as the trainer announces it. Between `pause` and `announce`, while it
 * puts new ones into the engines, calls wait; they do not fail.
 */
export class Weights {
  readonly #desk: TurnDesk;
  readonly #record: WeightsRecord;
  readonly #clock: { nowMs(): number };
  readonly #announced: Announced[];
  #paused: PauseMode | null;

  /** A pause outlives a restart: the trainer may still be at it. */
  constructor({ desk, record, clock }: WeightsOptions) {
    this.#desk = desk;
    this.#record = record;
    this.#clock = clock;
    this.#announced = record.announced();
    this.#paused = record.paused();
    desk.weightVersion = this.version;
    if (this.#paused) desk.pause(this.#paused);
  }

  get version(): string | null {
    return this.#announced.at(-1)?.version ?? null;
  }

  get paused(): PauseMode | null {
    return this.#paused;
  }

  /** How things are, with the last versions, the newest first. */
  view(limit: number) {
    const { version, paused } = this;
    const history = this.#announced.slice(-limit).reverse();
    return { version, paused, running: this.#desk.granted, waiting: this.#desk.waiting, history };
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
   * @throws ServiceError `not_ready` where calls still run after `waitMs`, and the pause goes on; the abort
   * reason of `signal`
   */
  async pause(mode: PauseMode, waitMs: number, signal: AbortSignal): Promise<void> {
    this.#paused = mode;
    this.#record.setPaused(mode);
    this.#desk.pause(mode);
    if (mode === "keep" || (await this.#desk.quiet(waitMs, signal))) return;
    const message = `${this.#desk.granted} calls still run after ${waitMs} ms; no further ones begin`;
    const mend = "send it again to wait on, or POST /v1/weights/resume to give it up";
    throw new ServiceError("not_ready", message, { mend });
  }

  /** The engines have these weights now: whoever waited goes on with them. */
  announce(version: string): void {
    if (version !== this.version) {
      const announced = { version, announcedMs: this.#clock.nowMs() };
      this.#record.announce(announced);
      this.#announced.push(announced);
      this.#desk.reweigh(version);
    }
    this.resume();
  }

  /** Goes on with the weights that were announced last. */
  resume(): void {
    this.#paused = null;
    this.#record.setPaused(null);
    this.#desk.resume();
  }
}

import { ServiceError } from "../errors.ts";
import type { Store } from "../store/store.ts";
import type { Room } from "./parts.ts";

type Operation = { work: () => void; fail: (error: unknown) => void };

/** How long a tick waits for room on the disk before it looks again. */
const FULL_DISK_MS = 200;

/** So many operations are not kept waiting for more that the loop may bring. */
const MAX_GATHERED = 32;

type TickerOptions = {
  store: Store;
  room?: Room;
  /** Runs last in every transaction: fills the slots that its operations freed. */
  fillSlots(): void;
  /** Runs last of all, after the commit: sends what was decided. */
  send(): void;
  /** A tick that can't be made durable: the service can't go on. */
  onFatal(error: unknown): void;
};

/** Makes one transaction of everything that is asked for at about the same moment. */
export class Ticker {
  readonly #options: TickerOptions;
  #operations: Operation[] = [];
  #afterCommit: (() => void)[] = [];
  #planned = false;
  /** How much was asked for since it was planned. */
  #asked = 0;
  /** What waits to be written, as far as it was said. */
  #bytes = 0;

  constructor(options: TickerOptions) {
    this.#options = options;
    this.#plan();
  }

  /** Runs `work` in the next tick's transaction; resolves with its result after the commit. */
  operate<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#operations.push({
        work: () => {
          const result = work();
          this.#afterCommit.push(() => resolve(result));
        },
        fail: reject,
      });
      this.#plan();
    });
  }

  /**
   * Like `operate`, where nobody waits: a refusal is then a bug, which stops the service.
   *
   * @param bytes what `work` writes, where that is much
   */
  enqueue(work: () => void, bytes = 0): void {
    this.#bytes += bytes;
    this.#operations.push({ work, fail: this.#options.onFatal });
    this.#plan();
  }

  /** For what the world may see only once it is durable. Inside a tick only. */
  afterCommit(effect: () => void): void {
    this.#afterCommit.push(effect);
  }

  /** What an operation that waits, or will, is made of. */
  joined(count: number): void {
    this.#asked += count;
  }

  #plan(): void {
    this.#asked++;
    if (this.#planned) return;
    this.#planned = true;
    setImmediate(() => this.#gather());
  }

  /**
   * Lets the loop turn for as long as each turn brings more. The requests of one wave are read by several turns, and a
   * tick for the first alone would have all others wait for its sync.
   */
  #gather(): void {
    const before = this.#asked;
    if (before >= MAX_GATHERED) this.#tick();
    else setImmediate(() => (this.#asked > before ? this.#gather() : this.#tick()));
  }

  #tick(): void {
    // What comes while the disk works is written by one commit: its sync has to wait for the disk anyway.
    const settled = this.#options.store.settled();
    if (settled !== null) {
      settled.then(
        () => setImmediate(() => this.#tick()),
        (error) => this.#fail(this.#take(), error),
      );
      return;
    }
    if (!this.#hasRoom()) return;
    const operations = this.#take();
    try {
      this.#options.store.transaction(() => {
        for (const operation of operations) this.#perform(operation);
        this.#options.fillSlots();
      });
    } catch (error) {
      this.#fail(operations, error);
      return;
    }
    this.#options.store.durable()?.catch(this.#options.onFatal);
    const effects = this.#afterCommit;
    this.#afterCommit = [];
    for (const effect of effects) effect();
    this.#options.send();
  }

  #take(): Operation[] {
    this.#planned = false;
    this.#asked = 0;
    this.#bytes = 0;
    return this.#operations.splice(0);
  }

  #fail(operations: Operation[], error: unknown): void {
    for (const operation of operations) operation.fail(error);
    this.#options.onFatal(error);
  }

  /** Where there is none it is asked again later; a data folder that is gone ends the service. */
  #hasRoom(): boolean {
    try {
      if (this.#options.room?.forTick(this.#bytes) !== false) return true;
      setTimeout(() => this.#tick(), FULL_DISK_MS);
    } catch (error) {
      this.#options.onFatal(error);
    }
    return false;
  }

  /** A refused operation has written nothing; any other error is a bug and undoes the whole tick. */
  #perform(operation: Operation): void {
    try {
      operation.work();
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      this.#afterCommit.push(() => operation.fail(error));
    }
  }
}

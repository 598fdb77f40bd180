import { isRunning } from "../lib/proc.ts";
import type { SandboxHandle } from "../sandbox/sandbox.ts";
import type { WarmSandbox } from "./messages.ts";

/** An image is in demand when so many jobs asked for it, the last of them so recently. */
const DEMAND_JOBS = 2;
const DEMAND_MS = 60_000;

/** How often it looks for what is no longer in demand. */
const LOOK_MS = 1000;

type Demand = { jobs: number; lastMs: number };

export type WarmPoolParts = {
  /** Sandboxes that it keeps at most; 0 switches it off. */
  size: number;
  nowMs(): number;
  /** Asks a thread for a sandbox; the answer comes to `started`. */
  start(id: string, image: string): void;
  end(handle: SandboxHandle): void;
  /** Whether the node is short of memory. */
  isTight(): boolean;
  /** Has `tend` called soon. */
  wake(): void;
};

/**
 * Sandboxes that no job has used yet, of images in demand. It starts one at a time and only while no job
 * starts one; each image in demand has the same share; and it lets go of them when the node or `room` is tight.
 * Images are told apart by what jobs call them: whether it is still the same content is for the worker to see.
 */
export class WarmPool {
  readonly #parts: WarmPoolParts;
  readonly #ready = new Map<string, WarmSandbox[]>();
  /** The most recently asked for last. */
  readonly #demand = new Map<string, Demand>();
  #starting: { id: string; image: string } | null = null;
  #timer: Timer | null = null;

  constructor(parts: WarmPoolParts) {
    this.#parts = parts;
  }

  get size(): number {
    let size = 0;
    for (const list of this.#ready.values()) size += list.length;
    return size;
  }

  /** A job wants a sandbox of `image`: one that is alive, or null. */
  take(image: string): WarmSandbox | null {
    if (this.#parts.size === 0) return null;
    const { jobs } = this.#demand.get(image) ?? { jobs: 0 };
    this.#demand.delete(image);
    this.#demand.set(image, { jobs: jobs + 1, lastMs: this.#parts.nowMs() });
    for (;;) {
      const warm = this.#pop(image);
      if (warm === null) return null;
      if (isRunning(warm.handle.holderPid, warm.handle.holderStartTime)) return warm;
      this.#parts.end(warm.handle);
    }
  }

  /** @param warm null: it did not start, and is not tried again until jobs ask for the image. */
  started(id: string, warm: WarmSandbox | null): void {
    const asked = this.#starting;
    if (asked?.id !== id) {
      if (warm) this.#parts.end(warm.handle);
      return;
    }
    this.#starting = null;
    if (warm) this.#ready.set(asked.image, [...(this.#ready.get(asked.image) ?? []), warm]);
    else this.#discourage(asked.image);
  }

  /** The thread that was to start one is gone. */
  lost(): void {
    this.#starting = null;
  }

  /**
   * @param starting jobs that start a sandbox now
   * @param room sandboxes that may be ahead of RUN, beside those that jobs have
   */
  tend(starting: number, room: number): void {
    if (this.#demand.size === 0) return;
    this.#forget();
    const most = this.#parts.isTight() ? 0 : Math.max(0, Math.min(this.#parts.size, room));
    while (this.size > most) this.#endOne([...this.#ready.keys()][0] as string);
    const idle = starting === 0 && this.#starting === null;
    const next = idle ? this.#next(most) : null;
    if (next !== null) {
      // As a job's own would be called: the name is seen inside.
      const id = `${crypto.randomUUID().replaceAll("-", "").slice(0, 20)}.1`;
      this.#starting = { id, image: next };
      this.#parts.start(id, next);
    }
    this.#look();
  }

  endAll(): void {
    for (const image of this.#ready.keys()) while (this.#ready.has(image)) this.#endOne(image);
    this.#demand.clear();
    // One that is still being started ends when it is told of.
    this.#starting = null;
    this.#look();
  }

  /** The image that the next one is for; makes room for an image that has none. */
  #next(most: number): string | null {
    const wanted = [...this.#demand].filter(([, { jobs }]) => jobs >= DEMAND_JOBS).reverse();
    const images = wanted.slice(0, most).map(([image]) => image);
    const share = Math.ceil(most / images.length);
    const count = (image: string) => this.#ready.get(image)?.length ?? 0;
    const next =
      images.find((image) => count(image) === 0) ?? images.find((it) => count(it) < share);
    if (next === undefined) return null;
    if (this.size < most) return next;
    const rich = [...this.#ready.keys()].find(
      (image) => count(image) > 1 || !images.includes(image),
    );
    if (rich === undefined || count(next) > 0) return null;
    this.#endOne(rich);
    return next;
  }

  /** As if no job had asked yet; what is ready of it still goes when nobody does for long. */
  #discourage(image: string): void {
    const demand = this.#demand.get(image);
    if (demand) demand.jobs = 0;
  }

  #forget(): void {
    const sinceMs = this.#parts.nowMs() - DEMAND_MS;
    for (const [image, { lastMs }] of this.#demand) {
      if (lastMs >= sinceMs) break;
      this.#demand.delete(image);
      while (this.#ready.has(image)) this.#endOne(image);
    }
  }

  #endOne(image: string): void {
    const warm = this.#pop(image);
    if (warm) this.#parts.end(warm.handle);
  }

  #pop(image: string): WarmSandbox | null {
    const list = this.#ready.get(image);
    const warm = list?.shift() ?? null;
    if (list?.length === 0) this.#ready.delete(image);
    return warm;
  }

  #look(): void {
    const needed = this.#demand.size > 0;
    if (needed && this.#timer === null) {
      this.#timer = setInterval(() => this.#parts.wake(), LOOK_MS);
      this.#timer.unref();
    }
    if (!needed && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
  }
}

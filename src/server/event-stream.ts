import type { Job } from "../jobs/job.ts";
import { viewGroupEvent } from "../protocol/group-event.ts";
import { viewRollout } from "../protocol/view.ts";
import type { ListFilter } from "../store/listing.ts";
import type { ServerParts } from "./parts.ts";

/** A comment is sent after as much silence, so that both ends see a connection that is gone. */
const HEARTBEAT_MS = 15_000;
/** Live events that wait for a reader, at most; one that falls further behind is cut. */
const MAX_LIVE = 1000;
const PAGE = 50;

type LiveEvent = Pick<Job, "id" | "stage" | "state" | "attempt">;

type Parts = Pick<ServerParts, "store" | "scheduler" | "slowReaderMs">;

/**
 * One reader's stream of events. The next page of the log is read when the reader has taken the last one, so a
 * slow reader costs no memory, only its place, and that not for long.
 */
export class EventStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #parts: Parts;
  readonly #filter: Omit<ListFilter, "order" | "limit">;
  readonly #hears: { cut(): void; over(): void };
  readonly #ended = new AbortController();
  readonly #watch: Timer;
  readonly #subscriptions = new DisposableStack();
  #live: LiveEvent[] = [];
  #wake: () => void = () => {};
  #after: number;
  /** Position in the log of groups and batches; null where they are not asked for. */
  #groupsAfter: number | null;
  /** Whether the log goes on behind the last page. */
  #more = false;
  /** When the chunk was made that the reader has not taken yet. */
  #offeredMs: number | null = null;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(
    parts: Parts,
    filter: Omit<ListFilter, "order" | "limit">,
    { live, groupsAfter }: { live: boolean; groupsAfter: number | null },
    hears: { cut(): void; over(): void },
  ) {
    this.#parts = parts;
    this.#filter = filter;
    this.#after = filter.after;
    this.#hears = hears;
    this.#groupsAfter = groupsAfter;
    const { feed } = parts.scheduler;
    if (live) this.#subscriptions.use(feed.subscribe((event) => this.#push(event)));
    if (groupsAfter !== null) this.#subscriptions.use(feed.subscribeEnds(() => this.#wake()));
    this.#watch = setInterval(() => this.#cutIfSlow(), parts.slowReaderMs / 4);
    this.body = new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
        controller.enqueue(encode(": rolloutd\n\n"));
      },
      pull: (controller) => this.#pull(controller),
      cancel: () => this.close(),
    });
  }

  /** Nothing of it is left to send, or nobody to send it to. */
  close(): void {
    this.#cut();
    this.#hears.over();
    try {
      this.#controller?.close();
    } catch {
      // The other side closed it first.
    }
  }

  /** Tells nothing more. It is over when its reader has taken what was told, or has gone. */
  #cut(): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    clearInterval(this.#watch);
    this.#subscriptions[Symbol.dispose]();
    this.#wake();
    this.#hears.cut();
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#offeredMs = null;
    if (this.#ended.signal.aborted) return this.close();
    let text = this.#next();
    while (text === "" && !this.#ended.signal.aborted) {
      if (this.#parts.scheduler.draining) return this.close();
      const woken = this.#more ? await nextTurn() : await this.#somethingNew();
      text = this.#next();
      if (!woken && text === "") text = ": still here\n\n";
    }
    await this.#parts.store.durable();
    if (this.#ended.signal.aborted) return this.close();
    this.#offeredMs = performance.now();
    controller.enqueue(encode(text));
  }

  /** What there is to tell now, as text of the protocol. */
  #next(): string {
    const own = this.#live.filter(({ id }) => this.#isOwn(id));
    const live = own.map((event) => `event: ${event.state}\ndata: ${JSON.stringify(event)}\n\n`);
    this.#live = [];
    const filter = { ...this.#filter, after: this.#after, limit: PAGE, order: "finished" as const };
    const { rows, next, more } = this.#parts.store.list(filter);
    this.#after = next;
    this.#more = more;
    const finished = rows.map((row) => {
      const data = JSON.stringify(viewRollout(row));
      return `id: ${this.#id(row.finished_seq)}\nevent: finished\ndata: ${data}\n\n`;
    });
    return [...live, ...finished, ...this.#nextGroups()].join("");
  }

  /** Behind the rollouts, because these have moved the position. */
  #nextGroups(): string[] {
    if (this.#groupsAfter === null) return [];
    const events = this.#parts.store.groupEvents.after(this.#groupsAfter, PAGE);
    this.#more ||= events.length === PAGE;
    return events.flatMap((event) => {
      this.#groupsAfter = event.ordinal;
      const { client } = this.#filter;
      if (client !== undefined && event.client !== client) return [];
      const data = JSON.stringify(viewGroupEvent(event));
      return [`id: ${this.#id(this.#after)}\nevent: ${event.event}\ndata: ${data}\n\n`];
    });
  }

  /** Of a live event, which tells no owner. */
  #isOwn(id: string): boolean {
    const { client } = this.#filter;
    return client === undefined || this.#parts.store.jobById(id)?.client === client;
  }

  #id(after: number | null): string {
    return this.#groupsAfter === null ? `${after}` : `${after}.${this.#groupsAfter}`;
  }

  async #somethingNew(): Promise<boolean> {
    const woken = new AbortController();
    const signal = AbortSignal.any([this.#ended.signal, woken.signal]);
    let live = false;
    this.#wake = () => {
      live = true;
      woken.abort();
    };
    const finished = await this.#parts.scheduler.waiters.any(HEARTBEAT_MS, signal);
    this.#wake = () => {};
    return finished || live;
  }

  #push({ id, stage, state, attempt }: Job): void {
    if (this.#live.push({ id, stage, state, attempt }) > MAX_LIVE) this.#cut();
    else this.#wake();
  }

  #cutIfSlow(): void {
    const waitedMs = this.#offeredMs === null ? 0 : performance.now() - this.#offeredMs;
    if (waitedMs > this.#parts.slowReaderMs) this.#cut();
  }
}

/** Lets others have their turn between two pages in which nothing matches. */
function nextTurn(): Promise<true> {
  return new Promise((resolve) => setImmediate(() => resolve(true)));
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

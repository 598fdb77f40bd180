import type { ClaimFilter, JobQueue } from "../store/job-queue.ts";
import type { WorkRow } from "../store/tables.ts";
import type { ActiveJob } from "./parts.ts";

type Queue = { client: string; busy: number; rows: WorkRow[]; complete: boolean };

/** Beyond as many clients it forgets who was served when, which costs one round of strict order. */
const MAX_REMEMBERED = 10_000;

/**
 * Who gets the free slots: the client with the fewest jobs at work, and among equals the one that waits
 * longest. So a client with a hundred thousand jobs delays another one's first job by one job's time.
 * Within a client, priority and age decide (`jobs/queue-key.ts`).
 */
export class FairShare {
  readonly #served = new Map<string, number>();
  #turn = 0;

  /** The jobs to claim, at most `limit`, the first to be served first. */
  candidates(
    jobQueue: JobQueue,
    active: ReadonlyMap<string, ActiveJob>,
    filter: Omit<ClaimFilter, "client">,
  ): WorkRow[] {
    const clients = jobQueue.clientsWaiting(filter.stage);
    const [only] = clients;
    if (only === undefined) return [];
    if (clients.length === 1) return jobQueue.claimable({ ...filter, client: only });
    const queues = this.#queues(jobQueue, active, filter, clients);
    const picked: WorkRow[] = [];
    while (picked.length < filter.limit) {
      const queue = this.#next(queues);
      if (!queue) break;
      picked.push(queue.rows.shift() as WorkRow);
      queue.busy++;
      this.#serve(queue.client);
      if (queue.rows.length === 0 && !queue.complete) refill(jobQueue, queue, filter, picked);
    }
    return picked;
  }

  #queues(
    jobQueue: JobQueue,
    active: ReadonlyMap<string, ActiveJob>,
    filter: Omit<ClaimFilter, "client">,
    clients: string[],
  ): Queue[] {
    const busy = new Map<string, number>();
    for (const { client } of active.values()) busy.set(client, (busy.get(client) ?? 0) + 1);
    const share = Math.ceil(filter.limit / clients.length);
    return clients
      .map((client) => ({ client, busy: busy.get(client) ?? 0 }))
      .sort((a, b) => this.#compare(a, b))
      .slice(0, filter.limit)
      .map(({ client, busy }) => {
        const rows = jobQueue.claimable({ ...filter, client, limit: share });
        return { client, busy, rows, complete: rows.length < share };
      });
  }

  #next(queues: Queue[]): Queue | undefined {
    let next: Queue | undefined;
    for (const queue of queues) {
      if (queue.rows.length > 0 && (!next || this.#compare(queue, next) < 0)) next = queue;
    }
    return next;
  }

  #compare(a: Pick<Queue, "client" | "busy">, b: Pick<Queue, "client" | "busy">): number {
    const waited = (client: string) => this.#served.get(client) ?? 0;
    return a.busy - b.busy || waited(a.client) - waited(b.client);
  }

  #serve(client: string): void {
    if (this.#served.size >= MAX_REMEMBERED) this.#served.clear();
    this.#served.set(client, ++this.#turn);
  }
}

/** Most clients have their share and no more; who can have more is asked once for all of it. */
function refill(
  jobQueue: JobQueue,
  queue: Queue,
  filter: Omit<ClaimFilter, "client">,
  picked: WorkRow[],
): void {
  const taken = new Set(picked.map(({ seq }) => seq));
  const rows = jobQueue.claimable({ ...filter, client: queue.client });
  queue.rows = rows.filter(({ seq }) => !taken.has(seq));
  queue.complete = true;
}

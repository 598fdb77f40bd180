import { KeepAlive, type Target } from "./keep-alive.ts";

/** Requests at a fixed rate that are open at once, at most; more wait, and their waiting counts. */
const PACED_CLIENTS = 64;

/** Units: milliseconds of each request; requests per second of all clients together. */
export type Load = { times: number[]; perSecond: number };

/** As many requests as `count` clients get answered, one after another each. */
export async function saturate(
  target: Target,
  request: Buffer,
  count: number,
  forMs: number,
): Promise<Load> {
  const times: number[] = [];
  const clients = await open(target, count);
  const startMs = performance.now();
  const work = async (client: KeepAlive) => {
    for (let nowMs = performance.now(); nowMs - startMs < forMs; ) {
      await client.send(request);
      const doneMs = performance.now();
      times.push(doneMs - nowMs);
      nowMs = doneMs;
    }
  };
  await Promise.all(clients.map(work));
  const perSecond = times.length / ((performance.now() - startMs) / 1000);
  for (const client of clients) client.end();
  return { times, perSecond };
}

/** Requests at a fixed rate, whether or not the ones before are answered; each counts from when it was due. */
export async function pace(
  target: Target,
  request: Buffer,
  perSecond: number,
  forMs: number,
): Promise<number[]> {
  const times: number[] = [];
  const idle = await open(target, PACED_CLIENTS);
  const clients = [...idle];
  const due: number[] = [];
  const running = new Set<Promise<void>>();
  const serve = () => {
    while (due.length > 0 && idle.length > 0) {
      const client = idle.pop() as KeepAlive;
      const dueMs = due.shift() as number;
      const one = client.send(request).then(() => {
        times.push(performance.now() - dueMs);
        idle.push(client);
        running.delete(one);
        serve();
      });
      running.add(one);
    }
  };
  const startMs = performance.now();
  for (let sent = 0, nowMs = startMs; nowMs - startMs < forMs; nowMs = performance.now()) {
    for (; startMs + (sent * 1000) / perSecond <= nowMs; sent++) {
      due.push(startMs + (sent * 1000) / perSecond);
    }
    serve();
    await Bun.sleep(1);
  }
  while (running.size > 0) await Promise.all(running);
  for (const client of clients) client.end();
  return times;
}

function open(target: Target, count: number): Promise<KeepAlive[]> {
  return Promise.all(Array.from({ length: count }, () => KeepAlive.open(target)));
}

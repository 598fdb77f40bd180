import type { ApiClient } from "./api-client.ts";
import { ServiceTally } from "./service-tally.ts";
import { type ServiceState, serviceLine, serviceScreen } from "./service-view.ts";
import { exitOf, onStop, type Stop } from "./signals.ts";

const EVERY_MS = 1000;
const PAGE = 200;

/**
 * Shows a service until SIGINT or SIGTERM: redrawn on a terminal, elsewhere a line when something has changed.
 * Resolves with the exit code of that signal.
 */
export async function watchService(client: ApiClient): Promise<number> {
  const ended = Promise.withResolvers<Stop>();
  using _listening = onStop(ended.resolve);
  const show = process.stdout.isTTY ? redraw : lines();
  const tally = new ServiceTally();
  let after = (await client.status()).finished_cursor;
  for (;;) {
    after = await count(client, tally, after);
    const [status, { backends }] = await Promise.all([client.status(), client.backends()]);
    show({ status, backends, tally });
    const stop = await Promise.race([ended.promise, Bun.sleep(EVERY_MS)]);
    if (stop) return exitOf(stop);
  }
}

/** Adds what has finished behind a position. Returns where to go on. */
async function count(client: ApiClient, tally: ServiceTally, from: number): Promise<number> {
  for (let after = from; ; ) {
    const query = { order: "finished", after, limit: PAGE };
    const page = await client.list(query);
    for (const rollout of page.rollouts) tally.add(rollout);
    after = page.next;
    if (page.rollouts.length < PAGE) return after;
  }
}

/** What does not fit is cut, because a line that wraps would push the others. */
function redraw(state: ServiceState): void {
  const { columns, rows } = process.stdout;
  const shown = serviceScreen(state)
    .trimEnd()
    .split("\n")
    .slice(0, Math.max(1, rows - 1));
  const text = shown.map((line) => `${line.slice(0, columns)}\x1b[K\n`).join("");
  process.stdout.write(`\x1b[H${text}\x1b[J`);
}

function lines(): (state: ServiceState) => void {
  let last = "";
  return (state) => {
    const line = serviceLine(state);
    if (line !== last) process.stdout.write(line);
    last = line;
  };
}

import type { Context } from "hono";
import type { ServerEnv, ServerParts } from "./parts.ts";

/** Keeps a request open until all of these jobs are over, the time is, or the client has gone. */
export async function waitFinal(
  c: Context<ServerEnv>,
  { store, scheduler, gate }: ServerParts,
  ids: string[],
  waitMs: number,
): Promise<void> {
  if (waitMs <= 0) return;
  c.env.keepOpen();
  const until = performance.now() + waitMs;
  await gate.wait(async () => {
    for (const id of ids) {
      const left = until - performance.now();
      if (!store.isUnfinished(id) || left <= 0 || scheduler.draining) continue;
      await scheduler.waiters.job(id, left, c.req.raw.signal);
    }
  });
}

import { Hono } from "hono";
import { scopeOf } from "../../jobs/owner.ts";
import type { JobCount } from "../../store/job-counts.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";

export function healthRoutes({ store, scheduler, backends, weights, version }: ServerParts) {
  const app = new Hono<ServerEnv>();

  app.get("/healthz", (c) => c.json({ status: "ok", version }));

  /** Ready means: takes work. Whether model-driven work can run now is told by `backends`. */
  app.get("/readyz", (c) => {
    const ready = !scheduler.draining;
    const body = { ready, draining: scheduler.draining, backends: backends.list().length };
    return c.json(body, ready ? 200 : 503);
  });

  app.get("/v1/status", (c) => {
    const { init, run, eval: evaluation } = scheduler.pools;
    const stages = {
      init: { pending: 0, active: 0, slots: init.slots },
      run: { pending: 0, active: 0, slots: run.slots },
      eval: { pending: 0, active: 0, slots: evaluation.slots },
    };
    const client = scopeOf(c.env.client);
    for (const { stage, state, count } of countsFor(client)) {
      stages[stage][state as "pending" | "active"] += count;
    }
    const { draining, staleAnswers } = scheduler;
    const unfinished = Object.values(stages).reduce((sum, of) => sum + of.pending + of.active, 0);
    return c.json({
      version,
      draining,
      unfinished,
      stages,
      finished_cursor: store.finishedCursor,
      stale_answers: staleAnswers,
      weights: { version: weights.version, paused: weights.paused },
    });
  });

  /** What a client sees of the queue is its own. */
  function countsFor(client: string | null): JobCount[] {
    if (client === null) return store.counts.list();
    const own = [...scheduler.active.values()].filter((each) => each.client === client);
    const active = own.map(({ job }) => ({ stage: job.stage, state: "active" as const, count: 1 }));
    return [...store.counts.pendingOf(client), ...active];
  }

  return app;
}

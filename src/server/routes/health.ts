import { Hono } from "hono";
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
    for (const { stage, state, count } of store.counts.list()) {
      stages[stage][state as "pending" | "active"] = count;
    }
    const { draining, unfinished, staleAnswers } = scheduler;
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

  return app;
}

import { Hono } from "hono";
import { z } from "zod";
import { scopeOf } from "../../jobs/owner.ts";
import type { JobCount } from "../../store/job-counts.ts";
import type { BackendView, MissingPart, ServerEnv, ServerParts } from "../parts.ts";
import { readQuery } from "../query.ts";

const PARTS: MissingPart["what"][] = ["driver", "image", "backend"];

export const readySchema = z.strictObject({
  /** What the service is not to be asked for, with commas between. */
  exclude: z
    .string()
    .min(1)
    .optional()
    .transform((text) => text?.split(",") ?? [])
    .pipe(z.array(z.enum(PARTS))),
});

function whatIsMissing(
  sandboxes: ServerParts["sandboxes"],
  backends: BackendView[],
): MissingPart[] {
  const missing = [...sandboxes.missing()];
  if (!backends.some(({ state }) => state === "healthy" || state === "trial")) {
    const some = backends.length > 0;
    const why = some ? "no inference server works" : "there is no inference server";
    const mend = some
      ? "`rolloutd backends list` says why"
      : "add one: `rolloutd backends add URL`, or --backend URL at the start";
    missing.push({ what: "backend", why, mend });
  }
  return missing;
}

export function healthRoutes(parts: ServerParts) {
  const { store, scheduler, backends, weights, version, sandboxes } = parts;
  const app = new Hono<ServerEnv>();

  app.get("/healthz", (c) => c.json({ status: "ok", version }));

  /**
   * Ready means: takes work, and has what work of all kinds needs. A probe of a service that does without one of them
   * leaves it out, as in `?exclude=image,backend`.
   */
  app.get("/readyz", (c) => {
    const { exclude } = readQuery(c, readySchema);
    const { draining } = scheduler;
    const missing = whatIsMissing(sandboxes, backends.list()).filter(
      ({ what }) => !exclude.includes(what),
    );
    const ready = !draining && missing.length === 0;
    const { driver } = sandboxes;
    const body = { ready, draining, driver, backends: backends.list().length, missing };
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

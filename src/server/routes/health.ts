import { Hono } from "hono";
import { z } from "zod";
import { parseBody } from "../../protocol/parse.ts";
import type { BackendView, MissingPart, ServerEnv, ServerParts } from "../parts.ts";

const PARTS: MissingPart["what"][] = ["driver", "image", "backend"];

export const readySchema = z.strictObject({
  /** What the service is not to be asked for, with commas between. */
  exclude: z
    .string()
    .default("")
    .transform((text) => text.split(",").filter((part) => part !== ""))
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
    const { exclude } = parseBody(readySchema, c.req.query());
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

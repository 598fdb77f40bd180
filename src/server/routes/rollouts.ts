import { type Context, Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { isFinal, STATES } from "../../jobs/job.ts";
import { inField, parseBody } from "../../protocol/parse.ts";
import { type RolloutRequest, rolloutRequestSchema, submitSchema } from "../../protocol/rollout.ts";
import { viewRollout } from "../../protocol/view.ts";
import type { JobRow } from "../../store/tables.ts";
import { readJson } from "../body.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";
import { trajectoryResponse } from "../representation.ts";

const MAX_WAIT_MS = 600_000;
const wait = z.coerce.number().int().min(0).max(MAX_WAIT_MS).default(0);
const waitQuery = z.strictObject({ wait_ms: wait });

const listQuery = z.strictObject({
  after: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  order: z.enum(["submitted", "finished"]).default("submitted"),
  state: z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(z.enum(STATES)))
    .optional(),
  wait_ms: wait,
});

export function rolloutRoutes(parts: ServerParts) {
  const { store, scheduler } = parts;
  const app = new Hono<ServerEnv>();

  app.post("/", async (c) => {
    const { requests, single, waitMs } = await readSubmit(c, parts.maxBodyBytes);
    const submissions = requests.map((request, index) =>
      inField(single ? "" : `rollouts[${index}]`, () => parts.accept(request)),
    );
    const submitted = await scheduler.submit(submissions);
    if (waitMs > 0) {
      c.env.keepOpen();
      const until = performance.now() + waitMs;
      for (const { id } of submitted) await waitFinal(c, id, until - performance.now());
    }
    const rollouts = submitted.map(({ id, created }) => ({ ...view(find(id)), created }));
    const status = submitted.some(({ created }) => created) ? 201 : 200;
    return single ? c.json(rollouts[0], status) : c.json({ rollouts }, status);
  });

  /** Rollouts behind a cursor. `next` is the cursor for the following page. */
  app.get("/", async (c) => {
    const query = parseBody(listQuery, c.req.query());
    const { after, limit, order, state: states } = query;
    const filter = { after, limit, order, ...(states ? { states } : {}) };
    const until = performance.now() + query.wait_ms;
    let rows = store.list(filter);
    if (query.wait_ms > 0) c.env.keepOpen();
    while (rows.length === 0 && performance.now() < until && !scheduler.draining) {
      const left = until - performance.now();
      if (!(await scheduler.waiters.any(left, c.req.raw.signal))) break;
      rows = store.list(filter);
    }
    const last = rows.at(-1);
    const position = order === "finished" ? last?.finished_seq : last?.seq;
    return c.json({ rollouts: rows.map(viewRollout), next: position ?? after });
  });

  app.get("/:id", async (c) => {
    const { wait_ms } = parseBody(waitQuery, c.req.query());
    const id = c.req.param("id");
    find(id);
    if (wait_ms > 0) {
      c.env.keepOpen();
      await waitFinal(c, id, wait_ms);
    }
    return c.json(view(find(id)));
  });

  app.get("/:id/trajectory", (c) => {
    const row = find(c.req.param("id"));
    const stored = store.trajectory(row.seq);
    if (!stored) {
      const message = isFinal(row)
        ? `rollout "${row.id}" ended before its first turn`
        : `rollout "${row.id}" has not ended its RUN yet`;
      throw new ServiceError("not_found", message, { field: "id" });
    }
    return trajectoryResponse(c.req.raw, stored.record);
  });

  /** Asks for the end; with `wait_ms` also waits for it. */
  app.delete("/:id", async (c) => {
    const { wait_ms } = parseBody(waitQuery, c.req.query());
    const id = c.req.param("id");
    if (!(await scheduler.cancel(id))) throw unknown(id);
    if (wait_ms > 0) {
      c.env.keepOpen();
      await waitFinal(c, id, wait_ms);
    }
    return c.json(view(find(id)));
  });

  function find(id: string): JobRow {
    const row = store.jobById(id);
    if (!row) throw unknown(id);
    return row;
  }

  async function waitFinal(c: Context<ServerEnv>, id: string, waitMs: number): Promise<void> {
    if (waitMs <= 0 || scheduler.draining || isFinal(find(id))) return;
    await scheduler.waiters.job(id, waitMs, c.req.raw.signal);
  }

  return app;
}

const view = viewRollout;

function unknown(id: string): ServiceError {
  return new ServiceError("not_found", `there is no rollout "${id}"`, { field: "id" });
}

/** A body with `rollouts` submits many; any other body is one rollout. */
async function readSubmit(c: Context<ServerEnv>, maxBodyBytes: number) {
  const body = await readJson(c.req.raw, maxBodyBytes);
  if (typeof body === "object" && body !== null && "rollouts" in body) {
    const { rollouts, wait_ms } = parseBody(submitSchema, body);
    return { requests: rollouts, single: false, waitMs: wait_ms ?? 0 };
  }
  const { wait_ms } = parseBody(waitQuery, c.req.query());
  const request: RolloutRequest = parseBody(rolloutRequestSchema, body);
  return { requests: [request], single: true, waitMs: wait_ms };
}

import { type Context, Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { BATCH_STATES } from "../../jobs/batch.ts";
import { appendSchema, batchRequestSchema } from "../../protocol/batch.ts";
import { type BatchView, viewBatch } from "../../protocol/batch-view.ts";
import { parseBody } from "../../protocol/parse.ts";
import { anyOf, cursor, pageLimit, waitMs, waitQuery } from "../../protocol/queries.ts";
import type { BatchRow } from "../../store/tables.ts";
import { readJson } from "../body.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";
import { waitFinal } from "../wait.ts";
import { describe, groupQuery } from "./groups.ts";

export const batchListQuery = z.strictObject({
  after: cursor.default(0),
  limit: pageLimit(1000, 100),
  state: anyOf(BATCH_STATES).optional(),
});

export const groupsQuery = z.strictObject({
  after: cursor.default(0),
  limit: pageLimit(100, 10),
  wait_ms: waitMs,
  ...groupQuery,
});

export function batchRoutes(parts: ServerParts) {
  const { store, scheduler } = parts;
  const { batches } = scheduler;
  const app = new Hono<ServerEnv>();

  app.post("/", async (c) => {
    const { wait_ms } = parseBody(waitQuery, c.req.query());
    const body = parseBody(batchRequestSchema, await readJson(c.req.raw, parts.maxBodyBytes));
    const { id, created } = await batches.submit(parts.acceptBatch(body, c.env.client));
    await waitUntil(c, id, wait_ms, () => false);
    return c.json({ created, ...view(find(id)) }, created ? 201 : 200);
  });

  app.get("/", (c) => {
    const { after, limit, state: states } = parseBody(batchListQuery, c.req.query());
    const rows = store.batches.list({ after, limit, ...(states ? { states } : {}) });
    return c.json({ batches: rows.map(view), next: rows.at(-1)?.seq ?? after });
  });

  app.get("/:id", async (c) => {
    const { wait_ms } = parseBody(waitQuery, c.req.query());
    const id = c.req.param("id");
    await waitUntil(c, id, wait_ms, () => false);
    const row = find(id);
    const over = row.finished_ms !== null;
    return c.json({
      ...view(row),
      ...(over ? { handed_over: store.remains.handedOver(row.seq) } : {}),
    });
  });

  app.post("/:id/instances", async (c) => {
    const row = find(c.req.param("id"));
    const body = parseBody(appendSchema, await readJson(c.req.raw, parts.maxBodyBytes));
    const groups = parts.acceptInstances(JSON.parse(row.options), body.instances);
    const { at = null, close = false } = body;
    return c.json(await batches.append(row.id, groups, { at, close }));
  });

  /**
   * Informative groups behind a cursor, in the order in which they were handed over. `next` is the cursor for the
   * following page; with `over` none will follow.
   */
  app.get("/:id/groups", async (c) => {
    const { after, limit, wait_ms, ...query } = parseBody(groupsQuery, c.req.query());
    const id = c.req.param("id");
    const page = () => store.batches.delivered(find(id).seq, after, limit);
    await waitUntil(c, id, wait_ms, () => page().length > 0);
    const rows = page();
    const next = rows.at(-1)?.delivered ?? after;
    const { seq, finished_ms } = find(id);
    const over = finished_ms !== null && next >= store.batches.deliveries(seq).delivered;
    return c.json({ groups: rows.map((row) => describe(parts, row, query)), next, over });
  });

  /**
   * Ends the batch and all that is under way for it; with `wait_ms` also waits until nothing of it runs. What it has
   * handed over stays.
   */
  app.delete("/:id", async (c) => {
    const { wait_ms } = parseBody(waitQuery, c.req.query());
    const id = c.req.param("id");
    const ended = await batches.cancel(id);
    if (!ended) throw unknown(id);
    await waitFinal(c, parts, store.batches.unfinishedRollouts(ended.seq), wait_ms);
    return c.json(view(find(id)));
  });

  function view(row: BatchRow): BatchView {
    const { seq } = row;
    const { delivered } = store.batches.deliveries(seq);
    const lengths = [...store.batches.lengths(seq), ...store.remains.lengths(seq)];
    return viewBatch(row, store.batches.groupCounts(seq), delivered, lengths);
  }

  function find(id: string): BatchRow {
    const row = store.batches.byId(id);
    if (!row) throw unknown(id);
    return row;
  }

  /** Waits for the end of the batch, or until `enough`. */
  async function waitUntil(
    c: Context<ServerEnv>,
    id: string,
    waitMs: number,
    enough: () => boolean,
  ): Promise<void> {
    const hasToWait = () => find(id).finished_ms === null && !enough() && !scheduler.draining;
    if (waitMs <= 0 || !hasToWait()) return;
    c.env.keepOpen();
    const until = performance.now() + waitMs;
    await parts.gate.wait(async () => {
      while (hasToWait()) {
        const left = until - performance.now();
        if (left <= 0 || !(await batches.waiters.job(id, left, c.req.raw.signal))) return;
      }
    });
  }

  return app;
}

function unknown(id: string): ServiceError {
  return new ServiceError("not_found", `there is no batch "${id}"`, { field: "id" });
}

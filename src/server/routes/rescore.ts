import { Hono } from "hono";
import { z } from "zod";
import { sees } from "../../jobs/owner.ts";
import { parseBody } from "../../protocol/parse.ts";
import { waitQuery } from "../../protocol/queries.ts";
import { rolloutIdSchema } from "../../protocol/rollout.ts";
import { viewRollout } from "../../protocol/view.ts";
import type { JobRow } from "../../store/tables.ts";
import { readJson } from "../body.ts";
import { ownRollout } from "../owned.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";
import { readQuery } from "../query.ts";
import { rescoreOf } from "../rescore.ts";
import { unknownRollout } from "../unknown-rollout.ts";
import { waitFinal } from "../wait.ts";

/** The same id again is the same rescore. */
export const rescoreSchema = z.strictObject({ id: rolloutIdSchema.optional() });

/** Scoring again what a rollout left, without its model. */
export function rescoreRoutes(parts: ServerParts) {
  const { store, scheduler } = parts;
  const app = new Hono<ServerEnv>();

  app.post("/:id/rescore", async (c) => {
    const { wait_ms } = readQuery(c, waitQuery);
    const empty = c.req.header("content-length") === "0" || c.req.raw.body === null;
    const body = empty ? {} : await readJson(c.req.raw, parts.maxBodyBytes);
    const given = parseBody(rescoreSchema, body);
    const row = store.workById(ownRollout(c, parts, c.req.param("id")).id);
    if (!row) throw unknownRollout(c.req.param("id"));
    const id = given.id ?? crypto.randomUUID();
    const [submitted] = await scheduler.submit([rescoreOf(row, id, c.env.client)]);
    await waitFinal(c, parts, [id], wait_ms);
    const created = submitted?.created === true;
    return c.json({ ...viewRollout(store.jobById(id) as JobRow), created }, created ? 201 : 200);
  });

  /** Every verdict on what a rollout left, the oldest first: its own, and those of its rescores. */
  app.get("/:id/scores", (c) => {
    const row = ownRollout(c, parts, c.req.param("id"));
    const first = (row.rescore_of && store.jobById(row.rescore_of)) || row;
    const scores = [first, ...store.rescores(first.id)]
      .filter(({ client }) => sees(c.env.client, client))
      .map(viewRollout);
    return c.json({ scores });
  });

  return app;
}

import { type Context, Hono } from "hono";
import { ServiceError } from "../../errors.ts";
import { isFinal } from "../../jobs/job.ts";
import { oneTrajectoryQuery, waitQuery } from "../../protocol/queries.ts";
import { viewTimeline } from "../../protocol/timeline.ts";
import { viewRollout } from "../../protocol/view.ts";
import type { JobRow } from "../../store/tables.ts";
import { ownRollout } from "../owned.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";
import { readQuery } from "../query.ts";
import { trajectoryResponse } from "../representation.ts";
import { waitFinal } from "../wait.ts";

/** What concerns one rollout. */
export function rolloutRoutes(parts: ServerParts) {
  const { store, scheduler } = parts;
  const app = new Hono<ServerEnv>();

  app.get("/:id", async (c) => {
    const { wait_ms } = readQuery(c, waitQuery);
    const id = c.req.param("id");
    find(c, id);
    await waitFinal(c, parts, [id], wait_ms);
    return c.json(viewRollout(find(c, id)));
  });

  app.get("/:id/trajectory", (c) => {
    const query = readQuery(c, oneTrajectoryQuery);
    const row = find(c, c.req.param("id"));
    // A rescore has no RUN of its own.
    const ran = (row.rescore_of && store.jobById(row.rescore_of)) || row;
    const stored = store.trajectory(ran.seq);
    if (!stored) {
      const message = isFinal(row)
        ? `rollout "${row.id}" ended before its first turn`
        : `rollout "${row.id}" has not ended its RUN yet`;
      throw new ServiceError("not_found", message, { field: "id" });
    }
    return trajectoryResponse(c.req.raw, stored.record, query);
  });

  /** Where its time went. */
  app.get("/:id/timeline", (c) => {
    const row = find(c, c.req.param("id"));
    const stored = store.trajectory(row.seq);
    return c.json(
      viewTimeline(row, stored && JSON.parse(stored.record), store.pastTurns.of(row.seq)),
    );
  });

  /** Asks for the end; with `wait_ms` also waits for it. */
  app.delete("/:id", async (c) => {
    const { wait_ms } = readQuery(c, waitQuery);
    const id = c.req.param("id");
    find(c, id);
    await scheduler.cancel(id);
    await waitFinal(c, parts, [id], wait_ms);
    return c.json(viewRollout(find(c, id)));
  });

  function find(c: Context<ServerEnv>, id: string): JobRow {
    return ownRollout(c, parts, id);
  }

  return app;
}

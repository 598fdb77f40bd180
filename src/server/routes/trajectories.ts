import { Hono } from "hono";
import { trajectoriesQuery } from "../../protocol/queries.ts";
import type { JobRow } from "../../store/tables.ts";
import { ownedBy } from "../owned.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";
import { readQuery } from "../query.ts";
import { trajectoriesResponse } from "../representation.ts";
import { selection } from "./list.ts";

/** The trajectories of a page of rollouts in one body; `rolloutd-next` is the cursor for the following page. */
export function trajectoryRoutes({ store }: ServerParts) {
  const app = new Hono<ServerEnv>();

  app.get("/", (c) => {
    const query = readQuery(c, trajectoriesQuery);
    const { after, limit, order } = query;
    const page = store.list({ ...selection(query), ...ownedBy(c), after, limit, order });
    const headers = { "rolloutd-next": `${page.next}`, "rolloutd-more": `${page.more}` };
    return trajectoriesResponse(c.req.raw, recordsOf(page.rows), query, headers);
  });

  /** Those that ended before their first turn have none. */
  async function* recordsOf(rows: JobRow[]): AsyncGenerator<string> {
    for (const { seq } of rows) {
      const stored = store.trajectory(seq);
      await store.durable();
      if (stored) yield stored.record;
    }
  }

  return app;
}

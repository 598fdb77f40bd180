import { Hono } from "hono";
import { z } from "zod";
import { viewInstance } from "../../protocol/instance-view.ts";
import { parseBody } from "../../protocol/parse.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";

const share = z.coerce.number().min(0).max(1).optional();

export const instanceQuery = z.strictObject({
  data_source: z.string().optional(),
  mean_at_least: share,
  mean_at_most: share,
  min_rollouts: z.coerce.number().int().min(1).optional(),
  after: z.string().default(""),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
});

/** How hard each instance was over all batches, for a curriculum. */
export function instanceRoutes({ store }: ServerParts) {
  const app = new Hono<ServerEnv>();

  app.get("/", (c) => {
    const query = parseBody(instanceQuery, c.req.query());
    const { data_source, mean_at_least, mean_at_most, min_rollouts, after, limit } = query;
    const rows = store.instances.list({
      ...{ after, limit },
      ...(data_source === undefined ? {} : { dataSource: data_source }),
      ...(mean_at_least === undefined ? {} : { meanAtLeast: mean_at_least }),
      ...(mean_at_most === undefined ? {} : { meanAtMost: mean_at_most }),
      ...(min_rollouts === undefined ? {} : { minRollouts: min_rollouts }),
    });
    return c.json({ instances: rows.map(viewInstance), next: rows.at(-1)?.key ?? after });
  });

  return app;
}

import { Hono } from "hono";
import { z } from "zod";
import { inScope } from "../../jobs/owner.ts";
import { viewInstance } from "../../protocol/instance-view.ts";
import { pageLimit, wholeQuery } from "../../protocol/queries.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";
import { readQuery } from "../query.ts";

const share = z
  .string()
  .regex(/^(0|1|0?\.\d{1,15}|[01]\.\d{1,15})$/, "must be a number from 0 to 1, such as 0.25")
  .transform(Number)
  .pipe(z.number().min(0).max(1))
  .optional();

export const instanceQuery = z.strictObject({
  data_source: z.string().min(1).optional(),
  mean_at_least: share,
  mean_at_most: share,
  min_rollouts: wholeQuery(1).optional(),
  after: z.string().default(""),
  limit: pageLimit(1000, 100),
});

/** How hard each instance was over all batches of its owner, for a curriculum. */
export function instanceRoutes({ store }: ServerParts) {
  const app = new Hono<ServerEnv>();

  app.get("/", (c) => {
    const query = readQuery(c, instanceQuery);
    const { data_source, mean_at_least, mean_at_most, min_rollouts, after, limit } = query;
    const scope = inScope(c.env.client, "");
    const rows = store.instances.list({
      ...{ after: scope + after, limit, prefix: scope },
      ...(data_source === undefined ? {} : { dataSource: data_source }),
      ...(mean_at_least === undefined ? {} : { meanAtLeast: mean_at_least }),
      ...(mean_at_most === undefined ? {} : { meanAtMost: mean_at_most }),
      ...(min_rollouts === undefined ? {} : { minRollouts: min_rollouts }),
    });
    const own = rows.map((row) => ({ ...row, key: row.key.slice(scope.length) }));
    return c.json({ instances: own.map(viewInstance), next: own.at(-1)?.key ?? after });
  });

  return app;
}

import { type Context, Hono } from "hono";
import type { z } from "zod";
import type { State } from "../../jobs/job.ts";
import { sees } from "../../jobs/owner.ts";
import { parseBody } from "../../protocol/parse.ts";
import { cancelQuery, listQuery, renewSchema } from "../../protocol/queries.ts";
import { viewRollout } from "../../protocol/view.ts";
import type { ListFilter, ListPage } from "../../store/listing.ts";
import { readJson } from "../body.ts";
import { ownedBy } from "../owned.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";
import { readQuery } from "../query.ts";

/** Jobs that one durable step of a cancel or a renewal takes. */
const STEP = 500;

/** What concerns many rollouts: lists, the log of finished ones, cancel and renewal by label. */
export function listRoutes(parts: ServerParts) {
  const { store, scheduler, gate } = parts;
  const app = new Hono<ServerEnv>();

  /** Rollouts behind a cursor. `next` is the cursor for the following page. */
  app.get("/", async (c) => {
    const query = readQuery(c, listQuery);
    const filter = { ...filterOf(query), ...ownedBy(c) };
    const page = await nextPage(c, { ...filter, order: query.order }, query.wait_ms);
    return c.json({ rollouts: page.rows.map(viewRollout), next: page.next, more: page.more });
  });

  app.delete("/", async (c) => {
    const query = readQuery(c, cancelQuery);
    const states = query.state ?? (["pending", "active"] as const);
    const ids = idsOf({ ...selection(query), ...ownedBy(c), states: [...states] });
    let cancelled = 0;
    for await (const step of ids) {
      await scheduler.cancelAll(step);
      cancelled += step.length;
    }
    return c.json({ cancelled });
  });

  /** Says that somebody still wants these rollouts. */
  app.post("/renew", async (c) => {
    const request = parseBody(renewSchema, await readJson(c.req.raw, parts.maxBodyBytes));
    if ("ids" in request) {
      const own = request.ids.filter((id) => {
        const row = store.jobById(id);
        return row !== null && sees(c.env.client, row.client);
      });
      const renewed = new Set(await scheduler.renew(own));
      const missing = request.ids.filter((id) => !renewed.has(id));
      return c.json({ renewed: renewed.size, missing });
    }
    let renewed = 0;
    const states: State[] = ["pending", "active"];
    const unfinished = { labels: request.labels, ...ownedBy(c), states };
    for await (const step of idsOf(unfinished)) renewed += (await scheduler.renew(step)).length;
    return c.json({ renewed, missing: [] });
  });

  async function nextPage(
    c: Context<ServerEnv>,
    filter: ListFilter,
    waitMs: number,
  ): Promise<ListPage> {
    let page = await firstMatch(filter);
    if (page.rows.length > 0 || waitMs === 0) return page;
    c.env.keepOpen();
    const until = performance.now() + waitMs;
    return gate.wait(async () => {
      while (page.rows.length === 0 && performance.now() < until && !scheduler.draining) {
        const left = until - performance.now();
        if (!(await scheduler.waiters.any(left, c.req.raw.signal))) break;
        page = await firstMatch({ ...filter, after: page.next });
      }
      return page;
    });
  }

  /** Goes on over pages where nothing matches, and lets others have their turn between them. */
  async function firstMatch(filter: ListFilter): Promise<ListPage> {
    let page = store.list(filter);
    while (page.rows.length === 0 && page.more) {
      await new Promise((resolve) => setImmediate(resolve));
      page = store.list({ ...filter, after: page.next });
    }
    return page;
  }

  async function* idsOf(
    filter: Omit<ListFilter, "after" | "limit" | "order">,
  ): AsyncGenerator<string[]> {
    let after = 0;
    for (let more = true; more; ) {
      const page = store.list({ ...filter, after, limit: STEP, order: "submitted" });
      yield page.rows.map(({ id }) => id);
      ({ next: after, more } = page);
    }
  }

  return app;
}

type Selection = {
  label?: Record<string, string> | undefined;
  state?: State[] | undefined;
  kind?: string | undefined;
};

/** The part of a query that says which rollouts are meant. */
export function selection({ label, state, kind }: Selection) {
  return {
    ...(label ? { labels: label } : {}),
    ...(state ? { states: state } : {}),
    ...(kind === undefined ? {} : { taskKind: kind }),
  };
}

function filterOf(query: z.output<typeof listQuery>): Omit<ListFilter, "order"> {
  const { after, limit } = query;
  return { after, limit, ...selection(query) };
}

import { type Context, Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { GROUP_STATES } from "../../jobs/group.ts";
import { advantagesQuery, groupRequestSchema } from "../../protocol/group.ts";
import { type GroupView, viewGroup } from "../../protocol/group-view.ts";
import { parseBody } from "../../protocol/parse.ts";
import { anyOf, cursor, pageLimit, waitMs } from "../../protocol/queries.ts";
import { trajectoryQuery, viewTrajectory } from "../../protocol/trajectory-view.ts";
import type { GroupRow } from "../../store/tables.ts";
import { readJson } from "../body.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";
import { waitFinal } from "../wait.ts";

export const groupQuery = {
  advantages: advantagesQuery,
  trajectories: z.stringbool().default(false),
  ...trajectoryQuery,
};
export const groupReadQuery = z.strictObject({ wait_ms: waitMs, ...groupQuery });

export const groupListQuery = z.strictObject({
  after: cursor.default(0),
  limit: pageLimit(1000, 100),
  state: anyOf(GROUP_STATES).optional(),
  ...groupQuery,
});

export type GroupQuery = Pick<z.infer<typeof groupReadQuery>, keyof typeof groupQuery>;

export function groupRoutes(parts: ServerParts) {
  const { store, scheduler } = parts;
  const { groups } = scheduler;
  const app = new Hono<ServerEnv>();

  app.post("/", async (c) => {
    const query = parseBody(groupReadQuery, c.req.query());
    const body = parseBody(groupRequestSchema, await readJson(c.req.raw, parts.maxBodyBytes));
    const { id, created } = await groups.submit(parts.acceptGroup(body, c.env.client));
    await waitDecided(c, id, query.wait_ms);
    return c.json({ created, ...describe(parts, find(id), query) }, created ? 201 : 200);
  });

  app.get("/", (c) => {
    const { after, limit, state: states, ...query } = parseBody(groupListQuery, c.req.query());
    const rows = store.groups.list({ after, limit, ...(states ? { states } : {}) });
    const views = rows.map((row) => describe(parts, row, query));
    return c.json({ groups: views, next: rows.at(-1)?.seq ?? after });
  });

  app.get("/:id", async (c) => {
    const query = parseBody(groupReadQuery, c.req.query());
    const id = c.req.param("id");
    await waitDecided(c, id, query.wait_ms);
    return c.json(describe(parts, find(id), query));
  });

  /** Ends the group and its rollouts; with `wait_ms` also waits until nothing of it runs. */
  app.delete("/:id", async (c) => {
    const query = parseBody(groupReadQuery, c.req.query());
    const id = c.req.param("id");
    if (!(await groups.cancel(id))) throw unknown(id);
    const members = store.groups.members(find(id).seq).map((job) => job.id);
    await waitFinal(c, parts, members, query.wait_ms);
    return c.json(describe(parts, find(id), query));
  });

  function find(id: string): GroupRow {
    const row = store.groups.byId(id);
    if (!row) throw unknown(id);
    return row;
  }

  async function waitDecided(c: Context<ServerEnv>, id: string, waitMs: number): Promise<void> {
    if (waitMs <= 0 || scheduler.draining || find(id).finished_ms !== null) return;
    c.env.keepOpen();
    await parts.gate.wait(() => groups.waiters.job(id, waitMs, c.req.raw.signal));
  }

  return app;
}

/** With `trajectories` each rollout of the group carries its own, or null where it has none. */
export function describe({ store }: ServerParts, row: GroupRow, query: GroupQuery): GroupView {
  const jobs = store.groups.members(row.seq);
  const remains = store.remains.ofGroup(row.seq);
  const view = viewGroup(row, jobs, query.advantages ?? null, remains);
  if (!query.trajectories) return view;
  const seqs = new Map(jobs.map((job) => [job.id, job.seq]));
  const members = view.members.map((member) => {
    const seq = member.id === null ? undefined : seqs.get(member.id);
    const record = seq === undefined ? null : (store.trajectory(seq)?.record ?? null);
    return { ...member, trajectory: record === null ? null : viewTrajectory(record, query) };
  });
  return { ...view, members };
}

function unknown(id: string): ServiceError {
  return new ServiceError("not_found", `there is no group "${id}"`, { field: "id" });
}

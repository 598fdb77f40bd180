import { type Context, Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { ENGINE_CHOICES } from "../../inference/engine-profile.ts";
import { sees } from "../../jobs/owner.ts";
import { parseBody } from "../../protocol/parse.ts";
import { pageLimit } from "../../protocol/queries.ts";
import { readJson } from "../body.ts";
import { requireOperator } from "../owned.ts";
import type { DecisionView, ServerEnv, ServerParts } from "../parts.ts";
import { readQuery } from "../query.ts";

export const addSchema = z.strictObject({
  url: z.url({ protocol: /^https?$/, error: "must be an http: or https: URL" }),
  model: z.string().min(1).optional(),
  model_dir: z.string().startsWith("/", "must be an absolute path").optional(),
  api_key_env: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of an environment variable")
    .optional(),
  engine: z.enum(ENGINE_CHOICES).optional(),
});

/** What becomes of the trajectories on a backend that leaves: they end there, or move at their next turn. */
export const leavingSchema = z.strictObject({
  trajectories: z.enum(["finish", "move"]).default("finish"),
});

export const decisionsSchema = z.strictObject({
  limit: pageLimit(512, 50),
});

function unknownBackend(id: string): ServiceError {
  const mend = "GET /v1/backends lists them";
  return new ServiceError("not_found", `there is no backend "${id}"`, { field: "id", mend });
}

export function backendRoutes({ store, backends, maxBodyBytes }: ServerParts) {
  const own = (c: Context<ServerEnv>, decisions: DecisionView[]) =>
    decisions.filter(({ job_id }) => {
      const row = store.jobById(job_id);
      return sees(c.env.client, row?.client ?? "");
    });
  const app = new Hono<ServerEnv>();

  app.get("/", (c) => c.json({ backends: backends.list() }));

  app.post("/", async (c) => {
    requireOperator(c);
    const request = parseBody(addSchema, await readJson(c.req.raw, maxBodyBytes));
    return c.json(await backends.add(request, c.req.raw.signal), 201);
  });

  app.get("/decisions", (c) => {
    const { limit } = readQuery(c, decisionsSchema);
    return c.json({ decisions: own(c, backends.decisions(limit)) });
  });

  app.get("/:id", (c) => {
    const id = c.req.param("id");
    const { limit } = readQuery(c, decisionsSchema);
    const backend = backends.list().find((candidate) => candidate.id === id);
    if (!backend) throw unknownBackend(id);
    return c.json({ ...backend, decisions: own(c, backends.decisions(limit, id)) });
  });

  app.post("/:id/drain", (c) => {
    requireOperator(c);
    const id = c.req.param("id");
    const { trajectories } = readQuery(c, leavingSchema);
    if (!backends.drain(id, trajectories)) throw unknownBackend(id);
    return c.json({ draining: id, trajectories });
  });

  app.delete("/:id", (c) => {
    requireOperator(c);
    const id = c.req.param("id");
    const { trajectories } = readQuery(c, leavingSchema);
    if (!backends.remove(id, trajectories)) throw unknownBackend(id);
    return c.json({ removed: id, trajectories });
  });

  return app;
}

import { Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { ENGINE_CHOICES } from "../../inference/engine-profile.ts";
import { parseBody } from "../../protocol/parse.ts";
import { readJson } from "../body.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";

const addSchema = z.strictObject({
  url: z.url({ protocol: /^https?$/, error: "must be an http: or https: URL" }),
  model: z.string().min(1).optional(),
  model_dir: z.string().startsWith("/", "must be an absolute path").optional(),
  api_key_env: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of an environment variable")
    .optional(),
  engine: z.enum(ENGINE_CHOICES).optional(),
});

export function backendRoutes({ backends, maxBodyBytes }: ServerParts) {
  const app = new Hono<ServerEnv>();

  app.get("/", (c) => c.json({ backends: backends.list() }));

  app.post("/", async (c) => {
    const request = parseBody(addSchema, await readJson(c.req.raw, maxBodyBytes));
    return c.json(await backends.add(request, c.req.raw.signal), 201);
  });

  app.delete("/:id", (c) => {
    const id = c.req.param("id");
    if (!backends.remove(id)) {
      const mend = "GET /v1/backends lists them";
      throw new ServiceError("not_found", `there is no backend "${id}"`, { field: "id", mend });
    }
    return c.json({ removed: id });
  });

  return app;
}

import { Hono } from "hono";
import { ServiceError, toErrorBody } from "../errors.ts";
import type { ServerEnv, ServerParts } from "./parts.ts";
import { backendRoutes } from "./routes/backends.ts";
import { batchRoutes } from "./routes/batches.ts";
import { groupRoutes } from "./routes/groups.ts";
import { healthRoutes } from "./routes/health.ts";
import { instanceRoutes } from "./routes/instances.ts";
import { rolloutRoutes } from "./routes/rollouts.ts";

/** All routes, the same over TCP and the Unix socket. Every error leaves as `{"error": ErrorBody}`. */
export function createApp(parts: ServerParts): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>();
  app.route("/", healthRoutes(parts));
  app.route("/v1/rollouts", rolloutRoutes(parts));
  app.route("/v1/groups", groupRoutes(parts));
  app.route("/v1/batches", batchRoutes(parts));
  app.route("/v1/instances", instanceRoutes(parts));
  app.route("/v1/backends", backendRoutes(parts));
  app.notFound((c) => {
    const message = `there is no ${c.req.method} ${c.req.path}`;
    const mend = "the routes are listed in the README under HTTP API";
    return errorResponse(new ServiceError("not_found", message, { field: "path", mend }));
  });
  app.onError((error) => errorResponse(error));
  return app;
}

function errorResponse(error: unknown): Response {
  const status = error instanceof ServiceError ? error.status : 500;
  return Response.json({ error: toErrorBody(error) }, { status: status === 200 ? 500 : status });
}

import { Hono } from "hono";
import { errorResponse } from "./error-response.ts";
import { answerUnrouted } from "./methods.ts";
import { OPERATIONS } from "./openapi/operations.ts";
import type { ServerEnv, ServerParts } from "./parts.ts";
import { noQuery, readQuery } from "./query.ts";
import { backendRoutes } from "./routes/backends.ts";
import { batchRoutes } from "./routes/batches.ts";
import { docRoutes } from "./routes/docs.ts";
import { eventRoutes } from "./routes/events.ts";
import { groupRoutes } from "./routes/groups.ts";
import { healthRoutes } from "./routes/health.ts";
import { instanceRoutes } from "./routes/instances.ts";
import { listRoutes } from "./routes/list.ts";
import { rescoreRoutes } from "./routes/rescore.ts";
import { rolloutRoutes } from "./routes/rollouts.ts";
import { submitRoutes } from "./routes/submit.ts";
import { trajectoryRoutes } from "./routes/trajectories.ts";
import { weightRoutes } from "./routes/weights.ts";

/** All routes, the same over TCP and the Unix socket. Every error leaves as `{"error": ErrorBody}`. */
export function createApp(parts: ServerParts): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>();
  for (const { route, query } of OPERATIONS) if (!query) takesNoQuery(app, route);
  app.route("/", healthRoutes(parts));
  app.route("/", docRoutes(parts));
  app.route("/v1/rollouts", submitRoutes(parts));
  app.route("/v1/rollouts", listRoutes(parts));
  app.route("/v1/rollouts", rolloutRoutes(parts));
  app.route("/v1/rollouts", rescoreRoutes(parts));
  app.route("/v1/trajectories", trajectoryRoutes(parts));
  app.route("/v1/groups", groupRoutes(parts));
  app.route("/v1/batches", batchRoutes(parts));
  app.route("/v1/instances", instanceRoutes(parts));
  app.route("/v1/events", eventRoutes(parts));
  app.route("/v1/backends", backendRoutes(parts));
  app.route("/v1/weights", weightRoutes(parts));
  app.notFound((c) => answerUnrouted(app, c.req.method, c.req.path));
  app.onError((error) => errorResponse(error));
  return app;
}

function takesNoQuery(app: Hono<ServerEnv>, route: string): void {
  const [method = "", path = ""] = route.split(" ");
  app.on(method, path.replace(/\{(\w+)\}/g, ":$1"), async (c, next) => {
    readQuery(c, noQuery);
    await next();
  });
}

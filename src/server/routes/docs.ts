import { Hono } from "hono";
import { Metrics } from "../metrics.ts";
import { openApiDocument } from "../openapi/document.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";

/** What programs read about the service: its description and its metrics. */
export function docRoutes(parts: ServerParts) {
  const app = new Hono<ServerEnv>();
  const metrics = new Metrics(parts);
  const document = JSON.stringify(openApiDocument(parts.version));

  app.get("/openapi.json", (c) => c.body(document, 200, { "content-type": "application/json" }));

  app.get("/metrics", (c) => {
    const headers = { "content-type": "text/plain; version=0.0.4" };
    return c.body(metrics.text(), 200, headers);
  });

  return app;
}

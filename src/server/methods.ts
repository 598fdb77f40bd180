import type { Hono } from "hono";
import { ServiceError } from "../errors.ts";
import { errorResponse } from "./error-response.ts";
import type { ServerEnv } from "./parts.ts";

/** What a path can be asked with, as `Allow` has it; empty where there is no such path. */
function allowedOn(app: Hono<ServerEnv>, path: string): string[] {
  const methods = [...new Set(app.routes.map(({ method }) => method))].sort();
  const own = methods.filter((method) => app.router.match(method, path)[0].length > 0);
  if (own.length === 0) return [];
  return [...own, ...(own.includes("GET") ? ["HEAD"] : []), "OPTIONS"];
}

/** The answer to a request that no route takes: what its path can be asked with, or that there is none. */
export function answerUnrouted(app: Hono<ServerEnv>, method: string, path: string): Response {
  const allowed = allowedOn(app, path);
  const message = `there is no ${method} ${path}`;
  if (allowed.length === 0) {
    const mend = "the routes are listed in the README under HTTP API";
    return errorResponse(new ServiceError("not_found", message, { field: "path", mend }));
  }
  const allow = allowed.join(", ");
  if (method === "OPTIONS") return new Response(null, { status: 204, headers: { allow } });
  const mend = `${path} takes ${allow}`;
  const response = errorResponse(
    new ServiceError("method_not_allowed", message, { field: "method", mend }),
  );
  response.headers.set("allow", allow);
  return response;
}

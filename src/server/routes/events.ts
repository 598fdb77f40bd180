import { Hono } from "hono";
import { ServiceError } from "../../errors.ts";
import { parseBody } from "../../protocol/parse.ts";
import { eventsQuery } from "../../protocol/queries.ts";
import { EventStream } from "../event-stream.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";
import { selection } from "./list.ts";

const HEADERS = { "content-type": "text/event-stream", "cache-control": "no-store" };

export function eventRoutes(parts: ServerParts) {
  const app = new Hono<ServerEnv>();

  /**
   * Finished rollouts as server-sent events. An event's id is its position in the log of finished rollouts, so a
   * reader that comes back with `Last-Event-ID` misses nothing and sees nothing twice, also after a restart.
   */
  app.get("/", (c) => {
    const query = parseBody(eventsQuery, c.req.query());
    const last = c.req.header("last-event-id");
    const after = last === undefined ? query.after : position(last);
    const filter = { ...selection(query), after: after ?? parts.store.finishedCursor };
    const place = parts.gate.openStream();
    c.env.keepOpen();
    const stream = new EventStream(parts, filter, query.live, () => {
      place[Symbol.dispose]();
      c.env.closeIfStuck();
    });
    c.req.raw.signal.addEventListener("abort", () => stream.close());
    return new Response(stream.body, { headers: HEADERS });
  });

  return app;
}

function position(lastEventId: string): number {
  const value = Number(lastEventId);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  const message = "Last-Event-ID: must be an id of this stream";
  throw new ServiceError("invalid_field", message, { field: "last-event-id" });
}

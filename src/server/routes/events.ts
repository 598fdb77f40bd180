import { Hono } from "hono";
import { ServiceError } from "../../errors.ts";
import { eventsQuery } from "../../protocol/queries.ts";
import { EventStream } from "../event-stream.ts";
import { ownedBy } from "../owned.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";
import { readQuery } from "../query.ts";
import { selection } from "./list.ts";

const HEADERS = { "content-type": "text/event-stream", "cache-control": "no-store" };

export function eventRoutes(parts: ServerParts) {
  const app = new Hono<ServerEnv>();

  /**
   * Finished rollouts as server-sent events, with `groups` those of groups and batches too. An event's id is the
   * reader's position in the logs of what is over, so one that comes back with `Last-Event-ID` misses nothing and
   * sees nothing twice, also after a restart.
   */
  app.get("/", (c) => {
    const query = readQuery(c, eventsQuery);
    if (c.req.method === "HEAD") return new Response(null, { headers: HEADERS });
    const last = c.req.header("last-event-id");
    const known = last === undefined ? { after: query.after } : position(last);
    const { after = parts.store.finishedCursor, groupsAfter } = known;
    const filter = { ...selection(query), ...ownedBy(c), after };
    // Who begins with the first rollout begins with the first group as well.
    const groups = groupsAfter ?? (known.after === 0 ? 0 : parts.store.groupEvents.cursor);
    const place = parts.gate.openStream();
    c.env.keepOpen();
    const options = { live: query.live, groupsAfter: query.groups ? groups : null };
    const stream = new EventStream(parts, filter, options, {
      over: () => place[Symbol.dispose](),
      cut: () => {
        place.linger();
        c.env.closeIfStuck();
      },
    });
    c.req.raw.signal.addEventListener("abort", () => stream.close());
    return new Response(stream.body, { headers: HEADERS });
  });

  return app;
}

type Position = { after: number | undefined; groupsAfter?: number };

/** `AFTER`, or `AFTER.GROUPS_AFTER` of a stream with groups. */
function position(lastEventId: string): Position {
  const [, after, groupsAfter] = /^(\d{1,15})(?:\.(\d{1,15}))?$/.exec(lastEventId) ?? [];
  if (after !== undefined) {
    if (groupsAfter === undefined) return { after: Number(after) };
    return { after: Number(after), groupsAfter: Number(groupsAfter) };
  }
  const message = "Last-Event-ID: must be an id of this stream";
  throw new ServiceError("invalid_field", message, { field: "last-event-id" });
}

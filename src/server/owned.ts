import type { Context } from "hono";
import { ServiceError } from "../errors.ts";
import { clientOfBatch, clientOfGroup, scopeOf, sees } from "../jobs/owner.ts";
import type { JobCount } from "../store/job-counts.ts";
import type { BatchRow, GroupRow, JobRow } from "../store/tables.ts";
import type { ServerEnv, ServerParts } from "./parts.ts";
import { unknownRollout } from "./unknown-rollout.ts";

type Asked = Context<ServerEnv>;
type Of<T> = Pick<T, Extract<keyof T, "store">>;

/** What is another client's is not there for this one. @throws ServiceError `not_found` */
export function ownRollout(c: Asked, { store }: Of<ServerParts>, id: string): JobRow {
  const row = store.jobById(id);
  if (row && sees(c.env.client, row.client)) return row;
  throw unknownRollout(id);
}

/** @throws ServiceError `not_found` */
export function ownGroup(c: Asked, { store }: Of<ServerParts>, id: string): GroupRow {
  const row = store.groups.byId(id);
  if (row && sees(c.env.client, clientOfGroup(row))) return row;
  throw new ServiceError("not_found", `there is no group "${id}"`, { field: "id" });
}

/** @throws ServiceError `not_found` */
export function ownBatch(c: Asked, { store }: Of<ServerParts>, id: string): BatchRow {
  const row = store.batches.byId(id);
  if (row && sees(c.env.client, clientOfBatch(row))) return row;
  throw new ServiceError("not_found", `there is no batch "${id}"`, { field: "id" });
}

/** The part of a filter that says whose: nothing for a client that sees all. */
export function ownedBy(c: Asked): { client?: string } {
  const client = scopeOf(c.env.client);
  return client === null ? {} : { client };
}

/** What a client sees of the queue: its own unfinished rollouts. */
export function ownCounts(
  c: Asked,
  { store, scheduler }: Pick<ServerParts, "store" | "scheduler">,
): JobCount[] {
  const client = scopeOf(c.env.client);
  if (client === null) return store.counts.list();
  const own = [...scheduler.active.values()].filter((each) => each.client === client);
  const active = own.map(({ job }) => ({ stage: job.stage, state: "active" as const, count: 1 }));
  return [...store.counts.pendingOf(client), ...active];
}

/**
 * What all clients share (inference servers, weights) is the operator's to change.
 *
 * @throws ServiceError `forbidden`
 */
export function requireOperator(c: Asked): void {
  if (scopeOf(c.env.client) === null) return;
  const mend = "use the operator's token (`operator:TOKEN` in --token-file), or the Unix socket";
  throw new ServiceError("forbidden", "inference servers and weights are the operator's", { mend });
}

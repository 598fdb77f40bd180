import { type Context, Hono } from "hono";
import { AcceptedText } from "../../protocol/accepted-text.ts";
import { inField, parseBody } from "../../protocol/parse.ts";
import { submitQuery } from "../../protocol/queries.ts";
import { type RolloutRequest, rolloutRequestSchema } from "../../protocol/rollout.ts";
import { parseSubmit } from "../../protocol/submit-body.ts";
import { viewRollout } from "../../protocol/view.ts";
import type { JobRow } from "../../store/tables.ts";
import { readJson } from "../body.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";
import { readQuery } from "../query.ts";
import { waitFinal } from "../wait.ts";

export function submitRoutes(parts: ServerParts) {
  const { store, scheduler } = parts;
  const app = new Hono<ServerEnv>();
  const texts = new AcceptedText();

  app.post("/", async (c) => {
    const { requests, single, waitMs, dryRun } = await readSubmit(c, parts.maxBodyBytes);
    const submissions = requests.map((request, index) => {
      const place = single ? "" : `rollouts[${index}]`;
      const submission = inField(place, () => parts.accept(request));
      submission.row.client = c.env.client;
      submission.place = place;
      return submission;
    });
    if (dryRun) {
      const rollouts = scheduler.dryRun(submissions);
      return single
        ? c.json({ ...rollouts[0], dry_run: true })
        : c.json({ rollouts, dry_run: true });
    }
    const submitted = await scheduler.submit(submissions);
    if (waitMs > 0)
      await waitFinal(
        c,
        parts,
        submitted.map(({ id }) => id),
        waitMs,
      );
    const rollouts = submitted.map(({ id, created, job }, index) => {
      const row = submissions[index]?.row;
      if (job !== null && row !== undefined && waitMs <= 0) return texts.of(job, row);
      return JSON.stringify({ ...viewRollout(store.jobById(id) as JobRow), created });
    });
    const status = submitted.some(({ created }) => created) ? 201 : 200;
    const text = single ? (rollouts[0] as string) : `{"rollouts":[${rollouts.join(",")}]}`;
    return c.body(text, status, { "content-type": "application/json" });
  });

  return app;
}

/** A body with `rollouts` submits many; any other body is one rollout. */
async function readSubmit(c: Context<ServerEnv>, maxBodyBytes: number) {
  const query = readQuery(c, submitQuery);
  const body = await readJson(c.req.raw, maxBodyBytes);
  const dryRun = query.dry_run;
  if (typeof body === "object" && body !== null && "rollouts" in body) {
    const { rollouts, wait_ms } = parseSubmit(body);
    return { requests: rollouts, single: false, waitMs: wait_ms ?? query.wait_ms, dryRun };
  }
  const request: RolloutRequest = parseBody(rolloutRequestSchema, body);
  return { requests: [request], single: true, waitMs: query.wait_ms, dryRun };
}

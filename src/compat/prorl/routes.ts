import { Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import type { Stage } from "../../jobs/job.ts";
import { readJson } from "../../server/body.ts";
import type { Gate } from "../../server/gate.ts";
import { ownCounts, requireOperator } from "../../server/owned.ts";
import type { ServerEnv } from "../../server/parts.ts";
import type { JobCount } from "../../store/job-counts.ts";
import { NOT_RUNNING, type ProrlGateway, type ProrlParts } from "./gateway.ts";
import { WrongShape } from "./process-request.ts";

/** An error quotes what was sent, which may be long. */
const MAX_MESSAGE = 2000;

const cancelSchema = z.looseObject({ job_id: z.string() });
const addSchema = z.looseObject({ address: z.string().min(1) });

/**
 * The routes of ProRL-Agent-Server's first generation, as its clients call them: no version in the path, every
 * error as `{"detail": text}`, and only 200 or not as its meaning.
 */
export function prorlRoutes(
  gateway: ProrlGateway,
  parts: Pick<ProrlParts, "store" | "scheduler" | "addresses"> & {
    gate: Gate;
    maxBodyBytes: number;
  },
): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>();
  const { addresses, gate, maxBodyBytes } = parts;
  const requireRunning = () => {
    if (!gateway.running) throw new ServiceError("not_ready", NOT_RUNNING);
  };

  app.post("/start", (c) => {
    requireOperator(c);
    if (!gateway.start()) return c.json({ detail: "Server is already running" }, 400);
    return c.json({ status: "Server started successfully" });
  });

  app.post("/stop", async (c) => {
    requireOperator(c);
    requireRunning();
    c.env.keepOpen();
    await gateway.stop();
    return c.json({ status: "Server stopped successfully" });
  });

  app.get("/status", (c) => {
    requireRunning();
    return c.json(statusOf(ownCounts(c, parts)));
  });

  app.post("/process", async (c) => {
    requireRunning();
    const body = await readJson(c.req.raw, maxBodyBytes);
    c.env.keepOpen();
    const result = await gate.wait(() => gateway.process(body, c.env.client, c.req.raw.signal));
    if (result) return c.json(result);
    return c.json({ detail: NOT_RUNNING }, 503);
  });

  app.post("/cancel", async (c) => {
    requireRunning();
    const { job_id } = shaped(cancelSchema, await readJson(c.req.raw, maxBodyBytes));
    const found = await gateway.cancel(job_id, c.env.client);
    return c.json({ status: `Cancel requested for job ${job_id}`, found });
  });

  app.post("/add_llm_server", async (c) => {
    requireOperator(c);
    const { address } = shaped(addSchema, await readJson(c.req.raw, maxBodyBytes));
    await addresses.add(address);
    const done = gateway.running ? "Added" : "Buffered";
    return c.json({ status: `${done} LLM server address: ${address}` });
  });

  app.post("/clear_llm_server", (c) => {
    requireOperator(c);
    addresses.clear();
    const which = gateway.running ? "all" : "buffered";
    return c.json({ status: `Cleared ${which} LLM server addresses` });
  });

  app.onError((error, c) => {
    const message = error instanceof Error ? error.message : String(error);
    const mend = error instanceof ServiceError && error.mend ? `; ${error.mend}` : "";
    const detail = `${message.slice(0, MAX_MESSAGE).toWellFormed()}${mend}`;
    return c.json({ detail }, statusFor(error));
  });

  return app;
}

function statusFor(error: unknown): 400 | 403 | 409 | 413 | 415 | 422 | 429 | 500 | 503 {
  if (!(error instanceof ServiceError)) return 500;
  if (error instanceof WrongShape || error.code === "bad_json") return 422;
  if (error.code === "id_conflict" || error.code === "backend_differs") return 409;
  const known = [400, 403, 413, 415, 429, 503] as const;
  return known.find((status) => status === error.status) ?? 500;
}

function shaped<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const field = issue?.path.join(".") || "body";
  throw new WrongShape("invalid_field", `${field}: ${issue?.message ?? "invalid"}`, { field });
}

/** The counters of both variants of upstream's server. */
function statusOf(unfinished: JobCount[]) {
  const counts = { pending: { init: 0, run: 0, eval: 0 }, active: { init: 0, run: 0, eval: 0 } };
  for (const { stage, state, count } of unfinished) {
    counts[state as "pending" | "active"][stage as Stage] += count;
  }
  const { pending, active } = counts;
  const sum = ({ init, run, eval: evaluating }: typeof active) => init + run + evaluating;
  return {
    status: "running",
    pending_jobs: sum(pending),
    init_queue: pending.init,
    run_queue: pending.run,
    eval_queue: pending.eval,
    active_init: active.init,
    active_run: active.run,
    active_eval: active.eval,
    total: sum(pending) + sum(active),
    running: true,
    jobs: sum(pending) + sum(active),
    init: pending.init + active.init,
    run: pending.run + active.run,
    eval: pending.eval + active.eval,
  };
}

import { createHash } from "node:crypto";
import { type Context, Hono } from "hono";
import { ServiceError } from "../../errors.ts";
import type { Submission } from "../../pipeline/parts.ts";
import type { Scheduler } from "../../pipeline/scheduler.ts";
import { canonicalJson, parseBody } from "../../protocol/parse.ts";
import type { RolloutRequest } from "../../protocol/rollout.ts";
import { viewRollout } from "../../protocol/view.ts";
import { readJson } from "../../server/body.ts";
import { errorResponse } from "../../server/error-response.ts";
import type { Gate } from "../../server/gate.ts";
import type { ServerEnv } from "../../server/parts.ts";
import type { Store } from "../../store/store.ts";
import { finishedRollout, storedTrajectory, unfinishedOf } from "../finished.ts";
import { aggregate, aggregateSchema } from "./aggregate.ts";
import { readRunRequest } from "./run-request.ts";
import { Runs } from "./runs.ts";
import type { GymServers } from "./scorer.ts";
import { verifyResponse } from "./verify-response.ts";

/** The name by which callers ask for this agent. */
const AGENT = "rolloutd";

/** Labels of its rollouts, by which a restarted service knows them. */
const API = "nemo-gym";
const BODY_LABEL = "body-sha256";

export type GymParts = {
  store: Store;
  scheduler: Scheduler;
  accept(request: RolloutRequest): Submission;
  /** The model's name, for the responses. */
  model(): string;
  gate: Gate;
  maxBodyBytes: number;
  settings: {
    /**
     * Who asks. `collector` is NeMo Gym's command line, which ends a whole collection at the first status that is
     * not 200; `rl` is NeMo RL, which dispatches again what was answered with 503.
     */
    statusMode: "collector" | "rl";
    adoptMs: number;
    /** Resources servers that score rows, by their names. */
    servers: GymServers;
  };
};

/**
 * NeMo Gym's side: an agent server that its trainers and its command line use by URL, and as much of its head
 * server as they need to find it.
 */
export function gymRoutes(parts: GymParts): Hono<ServerEnv> {
  const { scheduler, accept, settings, gate, maxBodyBytes } = parts;
  const app = new Hono<ServerEnv>();
  const runs = new Runs(settings.adoptMs, (id) => void scheduler.cancel(id));

  runs.orphanAll(
    unfinishedOf(parts, API).flatMap(({ id, labels }) => {
      const bodySha256 = labels === null ? undefined : JSON.parse(labels)[BODY_LABEL];
      return typeof bodySha256 === "string" ? [{ rolloutId: id, bodySha256 }] : [];
    }),
  );

  app.get("/global_config_dict_yaml", (c) => c.json(configYaml(addressOf(c))));

  app.get("/server_instances", (c) => {
    const { host, port, url } = addressOf(c);
    const name = { process_name: AGENT, name: AGENT, server_type: "responses_api_agents" };
    const since = { pid: process.pid, start_time: performance.timeOrigin / 1000 };
    return c.json([{ ...name, host, port, url, ...since, entrypoint: null }]);
  });

  app.post("/run", async (c) => {
    c.env.keepOpen();
    const body = await readJson(c.req.raw, maxBodyBytes);
    const bodySha256 = createHash("sha256").update(canonicalJson(body)).digest("hex");
    const labels = { api: API, [BODY_LABEL]: bodySha256 };
    const { row, rollout } = readRunRequest(body, { labels }, settings.servers);
    const finished = await gate.wait(async () => {
      const { run, adopted } = runs.enter(bodySha256);
      if (!adopted) {
        const { job, row: accepted } = accept({ ...rollout, id: run.rolloutId });
        await scheduler.submit([{ job, row: { ...accepted, client: c.env.client } }]);
      }
      const ended = await finishedRollout(parts, run.rolloutId, c.req.raw.signal);
      if (!ended) runs.orphan(run);
      return ended;
    });
    if (!finished) {
      throw new ServiceError("shutting_down", "the rollout goes on; send the request again");
    }
    const trajectory = storedTrajectory(parts, finished);
    const answer = verifyResponse(row, viewRollout(finished), trajectory, parts.model());
    const unavailable = settings.statusMode === "rl" && answer._ng_failure_class !== undefined;
    return c.json(answer, unavailable ? 503 : 200);
  });

  app.post("/aggregate_metrics", async (c) => {
    const { verify_responses } = parseBody(
      aggregateSchema,
      await readJson(c.req.raw, maxBodyBytes),
    );
    return c.json(aggregate(verify_responses));
  });

  app.onError((error) => errorResponse(error));

  return app;
}

/** A JSON text whose content is YAML, as callers decode it. One name at both levels, because some go by either. */
function configYaml({ host, port }: { host: string; port: number }): string {
  const agent = `{host: ${JSON.stringify(host)}, port: ${port}}`;
  return `${AGENT}:\n  responses_api_agents:\n    ${AGENT}: ${agent}\n`;
}

/** The address by which the caller reached this service, which is one that it can reach again. */
function addressOf(c: Context): { host: string; port: number; url: string } {
  const { protocol, hostname, port: named } = new URL(c.req.url);
  const port = Number(named || (protocol === "https:" ? 443 : 80));
  return { host: hostname, port, url: `${protocol}//${hostname}:${port}` };
}

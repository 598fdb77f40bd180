import { Hono } from "hono";
import { z } from "zod";
import { PAUSE_LEASE_MS, PAUSE_MODES } from "../../inference/weights.ts";
import { parseBody } from "../../protocol/parse.ts";
import { readJson } from "../body.ts";
import { requireOperator } from "../owned.ts";
import type { ServerEnv, ServerParts } from "../parts.ts";

const MAX_WAIT_MS = 3_600_000;
const MAX_LEASE_MS = 86_400_000;
const wait_ms = z.int().min(0).max(MAX_WAIT_MS).default(600_000);
const mode = z.enum(PAUSE_MODES).default("drain");

/** How long a pause lasts whose trainer is not heard of; making it again renews it. */
const lease_ms = z.int().min(1000).max(MAX_LEASE_MS).default(PAUSE_LEASE_MS);

/** Versions are the trainer's names; a number is taken for its text. */
const version = z.preprocess(
  (value) => (typeof value === "number" ? String(value) : value),
  z.string().regex(/^[\x21-\x7e]{1,256}$/, "must be a number, or 1-256 printable characters"),
);

export const announceSchema = z.strictObject({ version, mode, wait_ms });
export const pauseSchema = z.strictObject({ mode, wait_ms, lease_ms });

const HISTORY = 100;

/**
 * A trainer that changes the weights itself pauses, does so, and announces the new version, which resumes. One
 * whose engines have them already announces only: calls that run are then treated as `mode` says.
 */
export function weightRoutes({ weights, maxBodyBytes }: ServerParts) {
  const app = new Hono<ServerEnv>();
  const view = () => {
    const { history, pausedUntilMs: paused_until_ms, ...now } = weights.view(HISTORY);
    const named = history.map((known) => {
      return { version: known.version, announced_ms: known.announcedMs };
    });
    return { ...now, paused_until_ms, history: named };
  };

  app.get("/", (c) => c.json(view()));

  app.post("/", async (c) => {
    requireOperator(c);
    const request = parseBody(announceSchema, await readJson(c.req.raw, maxBodyBytes));
    c.env.keepOpen();
    if (weights.paused === null && request.version !== weights.version) {
      await weights.pause(request.mode, request.wait_ms, c.req.raw.signal);
    }
    weights.announce(request.version);
    return c.json(view());
  });

  app.post("/pause", async (c) => {
    requireOperator(c);
    const request = parseBody(pauseSchema, await readJson(c.req.raw, maxBodyBytes));
    c.env.keepOpen();
    const { mode, wait_ms, lease_ms } = request;
    await weights.pause(mode, wait_ms, c.req.raw.signal, lease_ms);
    return c.json(view());
  });

  app.post("/resume", (c) => {
    requireOperator(c);
    weights.resume();
    return c.json(view());
  });

  return app;
}

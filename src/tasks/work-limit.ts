import type { WorkTimes } from "../sandbox/work-meter.ts";
import type { EvalContext } from "./task-kind.ts";

/** A node may keep work waiting for as long again as the work may take, twice, before it is too busy for a verdict. */
export const PATIENCE = 3;

/** What EVAL does besides the work that its kind limits: starts, copies, proofs of an end. */
export const EVAL_SPARE_MS = 30_000;

/** EVAL's own limit, where nobody asks for another one, so that limits within it come first. */
export function roomyEvalMs(workMs: number): number {
  return workMs === 0 ? 0 : PATIENCE * workMs + EVAL_SPARE_MS;
}

/** Of EVAL's time, what submitted work may have: the rest is for a node that keeps it waiting. */
const SHARE = 0.8;

/**
 * A limit of submitted work as the sandbox wants it: within EVAL's, which is the same on every node, while what is left of
 * that says only how long a busy node may take.
 */
export function workLimit(
  timeoutMs: number,
  { limitMs, untilMs }: Pick<EvalContext, "limitMs" | "untilMs">,
): { timeoutMs: number; patienceMs: number } {
  const patienceMs = untilMs - performance.now();
  return { timeoutMs: Math.min(timeoutMs, SHARE * limitMs), patienceMs };
}

/** As a verdict tells it. */
export function usedOf(times: WorkTimes | undefined): Record<string, number> {
  if (!times) return {};
  const { wallMs, cpuMs, waitedMs } = times;
  return {
    wall_ms: Math.round(wallMs),
    cpu_ms: Math.round(cpuMs),
    waited_ms: Math.round(waitedMs),
  };
}

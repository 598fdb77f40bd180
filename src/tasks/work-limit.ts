import type { WorkTimes } from "../sandbox/work-meter.ts";

/** A node may keep work waiting for as long again as the work may take, twice, before it is too busy for a verdict. */
const PATIENCE = 3;

/** What EVAL does besides the work that its kind limits: starts, copies, proofs of an end. */
export const EVAL_SPARE_MS = 30_000;

/** EVAL's own limit, where nobody asks for another one, so that limits within it come first. */
export function roomyEvalMs(workMs: number): number {
  return workMs === 0 ? 0 : PATIENCE * workMs + EVAL_SPARE_MS;
}

/** Of the time that is left, what work may use of it: the rest is for a node that keeps it waiting. */
const SHARE_OF_LEFT = 0.8;

/** A limit of submitted work as the sandbox wants it, within the time that EVAL has left. */
export function workLimit(
  timeoutMs: number,
  untilMs: number,
): { timeoutMs: number; patienceMs: number } {
  const leftMs = Math.max(1, untilMs - performance.now());
  return { timeoutMs: Math.min(timeoutMs, SHARE_OF_LEFT * leftMs), patienceMs: leftMs };
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

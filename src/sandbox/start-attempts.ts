import { ServiceError } from "../errors.ts";
import { abortable } from "../lib/abortable.ts";
import type { SandboxHandle, SandboxSpec } from "./sandbox.ts";

/** What may go well a moment later. Every other failure is the image's or the node's, and would come back. */
const TRANSIENT = new Set(["sandbox_start_failed", "sandbox_died"]);

/** Before the second attempt; doubled for each further one. */
const PAUSE_MS = 100;

/**
 * Starts again what failed for a passing reason, within the time of one start: each attempt but the last has
 * half of what is left, so that one that hangs leaves room for another. Each makes a folder of its own.
 *
 * @throws ServiceError of the last attempt, or the reason of `signal`
 */
export async function startWithAttempts(
  start: (spec: SandboxSpec, signal: AbortSignal) => Promise<SandboxHandle>,
  spec: SandboxSpec,
  attempts: number,
  signal: AbortSignal,
): Promise<SandboxHandle> {
  const beginMs = performance.now();
  const endMs = beginMs + spec.limits.startTimeoutMs;
  for (let attempt = 1; ; attempt++) {
    const leftMs = endMs - performance.now();
    const isLast = attempt >= attempts || leftMs < 2;
    const startTimeoutMs = Math.max(1, Math.floor(isLast ? leftMs : leftMs / 2));
    try {
      return await start({ ...spec, limits: { ...spec.limits, startTimeoutMs } }, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ServiceError) || !TRANSIENT.has(error.code)) throw error;
      // Uneven, so that starts which failed together don't come back together.
      const pauseMs = PAUSE_MS * 2 ** (attempt - 1) * (0.5 + Math.random());
      if (isLast || performance.now() + pauseMs >= endMs) throw afterAll(error, attempt, beginMs);
      await abortable(Bun.sleep(pauseMs), signal);
    }
  }
}

function afterAll(last: ServiceError, attempts: number, beginMs: number): ServiceError {
  if (attempts === 1) return last;
  const tookMs = Math.round(performance.now() - beginMs);
  const { code, message, mend } = last;
  const options = { cause: last, ...(mend !== undefined && { mend }) };
  return new ServiceError(code, `${message} (attempt ${attempts}, after ${tookMs} ms)`, options);
}

import { ServiceError } from "../errors.ts";
import { abortable, atMost } from "../lib/abortable.ts";
import type { Exit, ProcessStream } from "./process-stream.ts";
import type { SandboxHandle, WorkEnd, WorkLimits } from "./sandbox.ts";
import { WorkMeter, type WorkTimes } from "./work-meter.ts";

const SIGKILL = 9;

/** Between two looks. */
const MIN_LOOK_MS = 20;
const MAX_LOOK_MS = 500;
const LOOKS = 40;

/** The kernel takes so long at most to end a sandbox full of processes on a node that is full of work. */
const KILLED_MS = 60_000;

/**
 * Waits for the end of submitted work, or ends it when it has had what it may have. Which limit that was does not depend
 * on the node's load: time that the node kept the work waiting counts for none but the last, `wallMs`.
 *
 * @param what runs, for the error
 * @throws ServiceError `node_exhausted` after `wallMs`, of work that had less than its limit by then
 */
export async function meteredEnd(
  process: ProcessStream,
  what: string,
  handle: SandboxHandle,
  limits: WorkLimits,
  signal?: AbortSignal,
): Promise<{ exit: Exit; end: WorkEnd; times: WorkTimes }> {
  const shortest = Math.min(limits.cpuMs, limits.workMs);
  const lookMs = Math.min(MAX_LOOK_MS, Math.max(MIN_LOOK_MS, shortest / LOOKS));
  const meter = new WorkMeter(handle, limits.workMs);
  for (;;) {
    const exit = await abortable(atMost(process.exited, lookMs, null), signal);
    if (exit !== null) return { exit, end: "itself", times: withCpu(meter.times(), exit) };
    const times = meter.look(lookMs);
    const end = crossed(times, limits);
    if (end === null) continue;
    if (end === "unserved") throw unserved(what, times);
    process.signal(SIGKILL);
    const killed = await abortable(atMost(process.exited, KILLED_MS, null), signal);
    if (killed !== null) return { exit: killed, end, times: withCpu(times, killed) };
    throw new ServiceError("sandbox_died", "a command can't be killed: it hangs in the kernel");
  }
}

function crossed({ wallMs, cpuMs, waitedMs }: WorkTimes, limits: WorkLimits) {
  if (cpuMs >= limits.cpuMs) return "cpu";
  if (wallMs - waitedMs >= limits.workMs) return "hung";
  if (wallMs < limits.wallMs) return null;
  return cpuMs >= limits.workMs ? "cpu" : "unserved";
}

/** The kernel's own sum is exact, where what was seen from outside is a sample. */
function withCpu(times: WorkTimes, { cpuMs }: Exit): WorkTimes {
  return { ...times, cpuMs: Math.max(times.cpuMs, cpuMs) };
}

/** The node gave the work too little of its processors for a verdict on it. */
function unserved(what: string, { wallMs, cpuMs, waitedMs }: WorkTimes): ServiceError {
  const [wall, cpu, waited] = [wallMs, cpuMs, waitedMs].map((ms) => `${Math.round(ms)} ms`);
  const message = `the node is too busy for ${what}: within ${wall} it had ${cpu} of the processor and waited ${waited} for one`;
  const mend = "lower eval_sandboxes, or give the service more of the node";
  return new ServiceError("node_exhausted", message, { mend });
}

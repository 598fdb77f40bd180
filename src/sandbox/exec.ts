import { availableParallelism } from "node:os";
import { ServiceError } from "../errors.ts";
import { abortable, atMost } from "../lib/abortable.ts";
import { BoundedOutput } from "../lib/bounded-output.ts";
import type { AttachedContext } from "./attached-context.ts";
import { errnoName, isShortage } from "./errno.ts";
import { meteredEnd } from "./metered-end.ts";
import { type Exit, ProcessStream, StartError } from "./process-stream.ts";
import type { ExecOptions, ExecResult, SandboxHandle } from "./sandbox.ts";

const SIGKILL = 9;

const cores = availableParallelism();

/** So long a killed process may take to end. One that waits for a file server that hangs does not. */
const KILLED_MS = 3000;

type Ended = Pick<ExecResult, "exitCode" | "signal" | "timedOut" | "times">;

/** Runs one command to its end, with pipes and no terminal. */
export async function exec(
  { channel, handle }: Pick<AttachedContext, "channel" | "handle">,
  argv: string[],
  options: ExecOptions & { cwd: string; env: Record<string, string> },
): Promise<ExecResult> {
  const { cwd, env, signal } = options;
  signal?.throwIfAborted();
  const stdout = new BoundedOutput(options.maxOutputBytes);
  const stderr = new BoundedOutput(options.maxOutputBytes);
  const process = new ProcessStream(channel, { kind: "pipes", cwd, argv, env }, (bytes, isStderr) =>
    (isStderr ? stderr : stdout).push(bytes),
  );
  if (options.stdin !== undefined) process.write(Buffer.from(options.stdin));
  process.endInput();
  const end = await endOf(process, `${argv[0] ?? ""} in ${cwd}`, handle, options);
  return { stdout: stdout.text(), stderr: stderr.text(), ...end };
}

/**
 * Waits as long as the limit says, then kills the group; what left the group lives on until the sandbox ends.
 * @param what was to be started where, for the error.
 * @throws ServiceError `sandbox_died` also where a killed process does not end
 */
export async function endOf(
  process: ProcessStream,
  what: string,
  handle: SandboxHandle,
  { timeoutMs, patienceMs, signal }: Pick<ExecOptions, "timeoutMs" | "patienceMs" | "signal">,
): Promise<Ended> {
  try {
    if (patienceMs !== undefined) {
      const limits = { cpuMs: cores * timeoutMs, workMs: timeoutMs, wallMs: patienceMs };
      const { exit, end, times } = await meteredEnd(process, what, handle, limits, signal);
      const timedOut = end !== "itself";
      return { exitCode: timedOut ? null : exit.code, signal: exit.signal, timedOut, times };
    }
    const exit = await abortable(atMost(process.exited, timeoutMs, null), signal);
    if (exit === null) process.signal(SIGKILL);
    const end = exit ?? (await endOfKilled(process, what, signal));
    return {
      exitCode: exit === null ? null : end.code,
      signal: end.signal,
      timedOut: exit === null,
    };
  } catch (error) {
    if (process.open) process.signal(SIGKILL);
    throw error instanceof StartError ? notStarted(what, error) : error;
  }
}

/** @throws ServiceError `sandbox_died` for one that does not end: its sandbox is of no more use. */
export async function endOfKilled(
  process: ProcessStream,
  what: string,
  signal?: AbortSignal,
): Promise<Exit> {
  const end = await abortable(atMost(process.exited, KILLED_MS, null), signal);
  if (end !== null) return end;
  throw new ServiceError("sandbox_died", `${what} can't be killed: it hangs in the kernel`);
}

/** Why a command could not be started. */
export function notStarted(what: string, error: StartError): ServiceError {
  const why = errnoName(error.errno);
  // Of the program that serves a mounted image: it has ended, and the sandbox will.
  if (why === "ENOTCONN") {
    return new ServiceError("sandbox_died", `cannot start ${what}: ${why}`, { cause: error });
  }
  // Its processes are used up, or our streams: that is no fault of the image.
  const code = isShortage(why) ? "sandbox_protocol" : "image_invalid";
  return new ServiceError(code, `cannot start ${what}: ${why}`, { cause: error });
}

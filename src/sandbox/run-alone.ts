import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { BoundedOutput } from "../lib/bounded-output.ts";
import type { AttachedContext } from "./attached-context.ts";
import { killedForMemory } from "./cgroup.ts";
import { notStarted } from "./exec.ts";
import { meteredEnd } from "./metered-end.ts";
import { ProcessStream, StartError } from "./process-stream.ts";
import type { AloneOptions, AloneResult } from "./sandbox.ts";

const MS_PER_S = 1000;
const SIGKILL = 9;

/** A process is ended by the kernel a while after the meter should have ended all of them. */
const SPARE_CPU_S = 2;

/** The supervisor's kind `alone`: one command, its limits set by PID 1, and all that it started gone after it. */
export async function runAlone(
  { channel, handle, paths, env }: AttachedContext,
  argv: string[],
  options: AloneOptions,
): Promise<AloneResult> {
  const { cpuMs, addressBytes, signal } = options;
  signal?.throwIfAborted();
  const stdout = new BoundedOutput(options.maxOutputBytes);
  const stderr = new BoundedOutput(options.maxOutputBytes);
  const limits = [`${Math.ceil(cpuMs / MS_PER_S) + SPARE_CPU_S}`, `${Math.floor(addressBytes)}`];
  const cwd = options.cwd ?? paths.home;
  const spawn = { kind: "alone" as const, cwd, argv: [...limits, ...argv], env };
  const killsBefore = kernelKills();
  const what = `${argv[0] ?? ""} in ${cwd}`;
  const process = new ProcessStream(channel, spawn, (bytes, isStderr) =>
    (isStderr ? stderr : stdout).push(bytes),
  );
  process.write(Buffer.from(options.stdin));
  process.endInput();
  try {
    const { exit, end, times } = await meteredEnd(process, what, handle, options, signal);
    const killed = end === "itself" && exit.signal === SIGKILL;
    if (killed && kernelKills() !== killsBefore) throw outOfMemory(handle.cgroup);
    return {
      stdout: stdout.text(),
      stderr: stderr.text(),
      exitCode: end === "itself" ? exit.code : null,
      signal: exit.signal,
      end: end === "itself" && times.cpuMs > cpuMs ? "cpu" : end,
      times,
      clean: exit.clean && readdirSync(join(handle.dir, "io")).length === 0,
    };
  } catch (error) {
    if (process.open) process.signal(SIGKILL);
    throw error instanceof StartError ? notStarted(what, error) : error;
  }
}

/** Whose memory it was: the sandbox's own, by its cgroup, or the node's, whose kernel ends what is in sandboxes first. */
function outOfMemory(cgroup: string | undefined): ServiceError {
  const used = cgroup === undefined ? null : killedForMemory(cgroup);
  if (used !== null) return new ServiceError("oom", `the sandbox had ${used} bytes of memory`);
  const mend = "lower the slots, or give the node more memory";
  const message = "the node ran out of memory while a command ran, and its kernel killed processes";
  return new ServiceError("node_exhausted", message, { mend });
}

/** How many processes the kernel has killed for want of memory, on the whole node; null where it does not say. */
function kernelKills(): string | null {
  try {
    return /^oom_kill (\d+)$/m.exec(readFileSync("/proc/vmstat", "utf8"))?.[1] ?? null;
  } catch {
    return null;
  }
}

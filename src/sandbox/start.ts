import { closeSync, openSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { ServiceError } from "../errors.ts";
import { abortable, atMost } from "../lib/abortable.ts";
import { fdIdentity } from "../lib/libc.ts";
import { bootId, descendantsOf, namespacePids, processStartTime } from "../lib/proc.ts";
import { inGroup, makeGroup } from "./cgroup.ts";
import { ControlChannel } from "./control-channel.ts";
import { LOG_FILE, makeDirectory, writeRecord } from "./directory.ts";
import { endSandbox } from "./end.ts";
import { FRAME, PROTOCOL_VERSION } from "./frames.ts";
import { verifyIsolation } from "./isolation.ts";
import { spawned } from "./programs.ts";
import type { DriverName, IsolationLevel, SandboxHandle, SandboxSpec } from "./sandbox.ts";

export type Launch = {
  argv: string[];
  env: Record<string, string>;
  /** What the command line asks for. Null: nothing, which is the host driver's. */
  level: IsolationLevel | null;
  /** The folder for sandboxes' cgroups, where the node delegates one. */
  cgroups?: string | null;
};

/** The starter gave up by itself, which is how a node that lacks something shows. */
export class StarterExited extends ServiceError {}

const LOG_TAIL_BYTES = 2000;

/** Starts a supervisor behind `launch`, waits until it answers, and lets go of it again. */
export async function startSupervisor(
  driver: DriverName,
  dir: string,
  assets: string[],
  launch: Launch,
  spec: SandboxSpec,
  signal: AbortSignal,
): Promise<SandboxHandle> {
  signal.throwIfAborted();
  makeDirectory(dir, assets);
  const handle: SandboxHandle = {
    id: spec.id,
    driver,
    dir,
    controlFd: -1,
    controlSocket: "",
    holderPid: 0,
    holderStartTime: "",
    starterPid: 0,
    starterStartTime: "",
    isolation: launch.level,
  };
  const record = { bootId: bootId(), handle };
  try {
    if (launch.cgroups) handle.cgroup = makeGroup(launch.cgroups, basename(dir), spec.limits);
    writeRecord(record);
    const starter = spawn({ ...launch, argv: inGroup(handle.cgroup, launch.argv) }, dir);
    handle.controlFd = starter.controlFd;
    handle.controlSocket = fdIdentity(starter.controlFd) ?? "";
    handle.starterPid = starter.pid;
    handle.starterStartTime = processStartTime(starter.pid) ?? "";
    writeRecord(record);
    await answered(starter.controlFd, starter.exited, spec.limits.startTimeoutMs, dir, signal);
    findHolder(handle);
    if (launch.level) verifyIsolation(handle.holderPid, launch.level);
    writeRecord(record);
    return handle;
  } catch (error) {
    await endSandbox(handle);
    throw error;
  }
}

function spawn(launch: Launch, dir: string) {
  // A file and not a pipe: the thread that would read it may be gone before the starter is.
  const log = openSync(join(dir, LOG_FILE), "a", 0o600);
  const program = launch.argv[0] ?? "";
  try {
    const starter = spawned(program, `Check that ${program} exists and may be executed.`, () =>
      Bun.spawn(launch.argv, {
        cwd: dir,
        env: launch.env,
        stdio: ["ignore", log, log, "pipe"],
        detached: true,
      }),
    );
    starter.unref();
    return {
      pid: starter.pid,
      controlFd: starter.stdio[3] as unknown as number,
      exited: starter.exited,
    };
  } finally {
    closeSync(log);
  }
}

async function answered(
  fd: number,
  exited: Promise<number>,
  timeoutMs: number,
  dir: string,
  signal: AbortSignal,
): Promise<void> {
  const channel = await ControlChannel.open(fd);
  try {
    const ready = new Promise<"ready">((resolve, reject) =>
      channel.listen(0, (type, payload) => {
        if (type === FRAME.ready && payload.readUInt32LE(4) === PROTOCOL_VERSION) resolve("ready");
        else reject(new ServiceError("sandbox_protocol", "the supervisor is another version"));
      }),
    );
    const ended = exited.then((code) => `it ended with ${code}`);
    const late = `it did not answer within ${timeoutMs} ms`;
    const outcome = await abortable(atMost(Promise.race([ready, ended]), timeoutMs, late), signal);
    if (outcome === late) throw new ServiceError("sandbox_start_failed", startFailed(late, dir));
    if (outcome !== "ready") {
      throw new StarterExited("sandbox_start_failed", startFailed(outcome, dir));
    }
    await abortable(channel.detach(), signal);
  } finally {
    channel.drop();
  }
}

function startFailed(why: string, dir: string): string {
  const log = readFileSync(join(dir, LOG_FILE), "utf8").slice(-LOG_TAIL_BYTES);
  const said = Bun.stripANSI(log).trim().replace(/\s+/g, " ");
  return `the sandbox did not start, ${why}: ${said}`;
}

/** PID 1 of the namespace that the starter made; with the host driver the starter itself. */
function findHolder(handle: SandboxHandle): void {
  const inner = (pid: number) => namespacePids(pid).length > 1 && namespacePids(pid).at(-1) === 1;
  const holder =
    handle.driver === "host" ? handle.starterPid : descendantsOf(handle.starterPid).find(inner);
  const startTime = holder === undefined ? null : processStartTime(holder);
  if (holder === undefined || startTime === null) {
    throw new ServiceError("sandbox_start_failed", "the sandbox ended while it started");
  }
  handle.holderPid = holder;
  handle.holderStartTime = startTime;
}

import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { ProcessLook } from "../../src/lib/process-look.ts";
import { removeTree } from "../../src/lib/remove-tree.ts";
import { attachSandbox } from "../../src/sandbox/attach.ts";
import { createDriver, type DriverOptions } from "../../src/sandbox/driver.ts";
import { endSandbox } from "../../src/sandbox/end.ts";
import type {
  DriverName,
  Sandbox,
  SandboxDriver,
  SandboxHandle,
  SandboxSpec,
} from "../../src/sandbox/sandbox.ts";

export type Bundle = AsyncDisposable & {
  dataDir: string;
  driver: SandboxDriver;
  spec(changes?: Partial<SandboxSpec>): SandboxSpec;
  start(changes?: Partial<SandboxSpec>): Promise<SandboxHandle>;
  open(changes?: Partial<SandboxSpec>): Promise<Sandbox>;
};

export const LIMITS = {
  startTimeoutMs: 30_000,
  processes: 4096,
  openFiles: 1024,
  fileBytes: 1_000_000_000,
  tmpfsBytes: 64 * 1024 * 1024,
  memoryBytes: 2_000_000_000,
  diskBytes: 2_000_000_000,
};
export const NO_ABORT = new AbortController().signal;
export const EXEC = { timeoutMs: 20_000, maxOutputBytes: 100_000 };

/** Leaves a process that has left its session and parent and ignores what can be ignored. */
export const DAEMONISE = [
  "python3",
  "-c",
  `import os, signal, time
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
if os.fork():
    os.wait()
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
while True:
    time.sleep(1)`,
];

/** `ROLLOUTD_APPTAINER`, `ROLLOUTD_BWRAP` and `ROLLOUTD_IMAGE`; `scripts/test` sets them. */
export function required(name: string): string {
  const value = process.env[name];
  if (value) return value;
  throw new Error(`${name} is not set: run ./scripts/test, which makes what it names`);
}

/**
 * A driver in a data folder of its own; what was started through it is ended with the test.
 * @param ofImage where specs name no other; the base image
 */
export async function setup(
  name: DriverName,
  options: Partial<DriverOptions> = {},
  ofImage = required("ROLLOUTD_IMAGE"),
): Promise<Bundle> {
  const dataDir = await mkdtemp(join(tmpdir(), "rolloutd-test-"));
  const driver = createDriver(name, {
    dataDir,
    apptainer: required("ROLLOUTD_APPTAINER"),
    bwrap: required("ROLLOUTD_BWRAP"),
    minIsolation: "B",
    startAttempts: 1,
    ...options,
  });
  const handles: SandboxHandle[] = [];
  const image = name === "host" ? "/" : ofImage;
  const spec = (changes?: Partial<SandboxSpec>): SandboxSpec => ({
    id: crypto.randomUUID(),
    image,
    writable: "tmpfs",
    limits: LIMITS,
    ...changes,
  });
  const start = async (changes?: Partial<SandboxSpec>) => {
    const handle = await driver.start(spec(changes), NO_ABORT);
    handles.push(handle);
    return handle;
  };
  return {
    dataDir,
    driver,
    spec,
    start,
    open: async (changes) => await attachSandbox(await start(changes)),
    async [Symbol.asyncDispose]() {
      const ends = handles.map((handle) => endSandbox(handle));
      await Promise.all((await Promise.all(ends)).map((report) => report.removed));
      await removeTree(dataDir);
    },
  };
}

/** Host pids that still belong to the sandbox, by session and by mounts. */
export async function leftovers(handle: SandboxHandle): Promise<number[]> {
  const look = new ProcessLook();
  return [...look.inSession(handle.starterPid), ...look.mounting(basename(handle.dir))];
}

/** What `promise` rejects with; a test that expects a failure fails without one. */
export async function failure(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  return await promise.then(
    (value) => {
      throw new Error(`expected a failure, got ${JSON.stringify(value)}`);
    },
    (error) => error,
  );
}

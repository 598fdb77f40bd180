import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeTree } from "../src/lib/remove-tree.ts";
import { createDriver } from "../src/sandbox/driver.ts";
import type { DriverName, SandboxDriver, SandboxSpec } from "../src/sandbox/sandbox.ts";
import { LIMITS, required } from "../test/sandbox/setup.ts";

export const NO_ABORT = new AbortController().signal;

export type SandboxBundle = AsyncDisposable & {
  dataDir: string;
  driver(name: DriverName): SandboxDriver;
  spec(changes?: Partial<SandboxSpec>): SandboxSpec;
};

/** Drivers in a data folder of their own, with what `scripts/setup` found or made. */
export async function sandboxBundle(): Promise<SandboxBundle> {
  const dataDir = await mkdtemp(join(tmpdir(), "rolloutd-bench-"));
  const apptainer = required("ROLLOUTD_APPTAINER");
  const bwrap = required("ROLLOUTD_BWRAP");
  const options = { dataDir, apptainer, bwrap, startAttempts: 1 };
  const image = required("ROLLOUTD_IMAGE");
  let count = 0;
  return {
    dataDir,
    driver: (name) => createDriver(name, { ...options, minIsolation: "A" }),
    spec: (changes) => ({
      ...{ id: `bench.${count++}`, image, writable: "tmpfs", limits: LIMITS },
      ...changes,
    }),
    [Symbol.asyncDispose]: () => removeTree(dataDir),
  };
}

/** Works through `count` tasks with so many `atOnce`. */
export async function lanes(
  count: number,
  atOnce: number,
  task: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await task(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}

import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { ProcessLook } from "../../src/lib/process-look.ts";
import type { RolloutView } from "../../src/protocol/view.ts";
import { INSIDE } from "../../src/sandbox/environment.ts";
import { mathRow, sandboxFlags, serve, simulate, turn } from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";

/** Each bounded by itself, so that a limit that fails does not cost the machine. */
const HOGS = {
  oom: "x = b'x' * (1500 * 1024 * 1024); import time; time.sleep(100)",
  pids_limit: `import os, time
for _ in range(600):
    try:
        if os.fork() == 0:
            break
    except OSError:
        time.sleep(0.01)
time.sleep(100)`,
  disk_limit: `import time
for i in range(40):
    open(f"${INSIDE.io}/{i}", "wb").write(b"x" * 10_000_000)
    time.sleep(0.02)
time.sleep(100)`,
};

test("a job that goes beyond a limit fails by it, in its time, and leaves nothing", async () => {
  using dir = tempDir();
  const scripts = Object.entries(HOGS).map(([match, code]) => ({
    match,
    variants: [[turn("execute_ipython_cell", { code })]],
  }));
  await using engine = await simulate(dir.path, scripts);
  const data = dir.file("data");
  // Memory enough that a bomb of 200 small processes is told as what it is.
  const limits = { memory: 1_500_000_000, processes: 200, disk: 100_000_000 };
  await using service = await serve(data, [
    ...[...sandboxFlags(), "--backend", engine.url],
    ...["--sandbox-memory-bytes", `${limits.memory}`, "--sandbox-disk-bytes", `${limits.disk}`],
    // None kept ready, so that nothing is to be left.
    ...["--sandbox-processes", `${limits.processes}`, "--warm-sandboxes", "0"],
  ]);
  const ends = Object.keys(HOGS).map(async (code) => {
    const body = JSON.stringify({ instance: mathRow(`Now ${code}.`, "1") });
    const url = "http://localhost/v1/rollouts?wait_ms=30000";
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
      unix: service.socket,
    });
    const { state, reward, error, sandbox_peak } = (await response.json()) as RolloutView;
    if (code === "oom") expect(sandbox_peak?.memory_bytes).toBeGreaterThan(limits.memory);
    if (code === "pids_limit") expect(sandbox_peak?.processes).toBeGreaterThanOrEqual(200);
    return { state, reward, code: error?.code, stage: error?.stage, retryable: error?.retryable };
  });
  const failed = { state: "failed", reward: null, stage: "run", retryable: false };
  expect(await Promise.all(ends)).toEqual(
    Object.keys(HOGS).map((code) => ({ ...failed, code })) as never,
  );
  const left = readdirSync(join(data, "sandboxes")).filter((name) => name !== ".trash");
  expect([left, new ProcessLook().mounting(basename(dir.path))]).toEqual([[], []]);
});

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { FileLock } from "../../src/lib/file-lock.ts";
import { attachSandbox } from "../../src/sandbox/attach.ts";
import { endSandbox, killSandbox } from "../../src/sandbox/end.ts";
import type { SandboxHandle, SandboxSpec } from "../../src/sandbox/sandbox.ts";
import { WarmDriver, warmUp } from "../../src/worker/warm.ts";
import { EXEC, LIMITS, NO_ABORT, required, setup } from "../sandbox/setup.ts";
import { tempDir } from "../support/temp-dir.ts";
import { SETTINGS } from "./setup.ts";

setDefaultTimeout(60_000);

/** A warm sandbox of a real driver, and the job's spec that would have started the same. */
async function warmed() {
  const bundle = await setup("bubblewrap");
  const dir = tempDir();
  const spec = bundle.spec({ id: "job.1" });
  const settings = {
    ...SETTINGS,
    defaultImage: spec.image,
    sandbox: { writable: "tmpfs" as const, ...LIMITS },
  };
  const acquire = async (path: string) => {
    const lock = new FileLock(dir.file("lock"));
    lock.tryShared();
    return { path, digest: "d", lock };
  };
  const parts = { settings, driver: bundle.driver, images: { acquire } };
  const warm = await warmUp({ type: "warm_up", id: "warm.1", image: "" }, parts);
  if (warm === null) throw new Error("the warm sandbox did not start");
  const end = async (handle: SandboxHandle) => void (await endSandbox(handle));
  return {
    bundle,
    warm,
    spec,
    lockIsFree: () => {
      using other = new FileLock(dir.file("lock"));
      return other.tryExclusive();
    },
    driver: new WarmDriver(bundle.driver, warm, end),
    async start(driver: WarmDriver, changes: Partial<SandboxSpec> = {}) {
      const handle = await driver.start({ ...spec, ...changes }, NO_ABORT);
      return { handle, [Symbol.asyncDispose]: () => end(handle) };
    },
    async [Symbol.asyncDispose]() {
      await end(warm.handle);
      await bundle[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}

describe("a warm sandbox", () => {
  test("is what the job's start gives, once, without a lock of its own on the image", async () => {
    await using t = await warmed();
    expect(t.lockIsFree()).toBe(false);
    await using first = await t.start(t.driver);
    expect(first.handle.id).toBe("warm.1");
    expect(t.lockIsFree()).toBe(true);
    const sandbox = await attachSandbox(first.handle);
    expect(await sandbox.exec(["echo", "fine"], EXEC)).toMatchObject({ stdout: "fine\n" });
    await using second = await t.start(t.driver);
    expect(second.handle.id).toBe("job.1");
    await t.driver.endUnused();
    expect(existsSync(first.handle.dir)).toBe(true);
  });

  test.each([
    ["other files", { image: `${required("ROLLOUTD_IMAGE")}/.` }],
    ["another limit", { limits: { ...LIMITS, processes: 77 } }],
    ["another layer", { writable: "overlay" as const }],
  ])("of %s is ended, and a fresh one started", async (_what, changes) => {
    await using t = await warmed();
    await using fresh = await t.start(t.driver, changes);
    expect(fresh.handle.id).toBe("job.1");
    expect([existsSync(t.warm.handle.dir), t.lockIsFree()]).toEqual([false, true]);
  });

  test("that has died is ended, and a fresh one started", async () => {
    await using t = await warmed();
    killSandbox(t.warm.handle);
    await using fresh = await t.start(t.driver);
    expect(fresh.handle.id).toBe("job.1");
    expect(existsSync(t.warm.handle.dir)).toBe(false);
  });

  test("that a job did not come to need is ended with it", async () => {
    await using t = await warmed();
    await t.driver.endUnused();
    expect([existsSync(t.warm.handle.dir), t.lockIsFree()]).toEqual([false, true]);
  });
});

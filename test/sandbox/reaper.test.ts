import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { bootId, descendantsOf, isRunning, processStartTime } from "../../src/lib/proc.ts";
import { removeTree } from "../../src/lib/remove-tree.ts";
import { reapSandboxes } from "../../src/sandbox/reaper.ts";
import type { DriverName, SandboxHandle } from "../../src/sandbox/sandbox.ts";
import { waitFor } from "../support/wait-for.ts";
import { leftovers, setup } from "./setup.ts";

setDefaultTimeout(60_000);

/** A folder of sandboxes with the record of one that never was. */
async function fakeRoot(changes: Partial<SandboxHandle> & { bootId?: string }) {
  const root = await mkdtemp(join(tmpdir(), "rolloutd-reaper-"));
  const dir = join(root, "left");
  mkdirSync(dir);
  const handle: SandboxHandle = {
    id: "left",
    driver: "host",
    dir,
    controlFd: 0,
    controlSocket: "socket:[1]",
    holderPid: 0,
    holderStartTime: "",
    starterPid: 0,
    starterStartTime: "",
    isolation: null,
    ...changes,
  };
  const record = { bootId: changes.bootId ?? bootId(), handle };
  writeFileSync(join(dir, "record.json"), JSON.stringify(record));
  return { root, [Symbol.asyncDispose]: () => removeTree(root) };
}

function bystander() {
  const child = Bun.spawn(["sleep", "1000"], { detached: true });
  const startTime = processStartTime(child.pid) as string;
  return {
    pid: child.pid,
    startTime,
    runs: () => isRunning(child.pid, startTime),
    [Symbol.dispose]: () => child.kill(9),
  };
}

for (const driver of ["host", "apptainer", "bubblewrap"] as DriverName[]) {
  describe(`reaper: ${driver}`, () => {
    test("a sandbox that still runs is killed and its folder removed", async () => {
      await using bundle = await setup(driver);
      const { handle } = await bundle.open();
      const root = dirname(handle.dir);
      const reaped = await reapSandboxes(root);
      expect(reaped).toMatchObject({ sandboxes: [basename(handle.dir)], survivors: [] });
      expect(await leftovers(handle)).toEqual([]);
      expect(readdirSync(root)).toEqual([]);
    });

    test("a service killed with SIGKILL leaves no process, and the next one removes the rest", async () => {
      await using service = Bun.spawn(
        [process.execPath, join(import.meta.dir, "crashing-service.ts"), driver],
        { env: process.env, stdio: ["ignore", "pipe", "inherit"] },
      );
      const line = (await service.stdout.getReader().read()).value;
      const { handle, dataDir } = JSON.parse(new TextDecoder().decode(line));
      const family = [handle.holderPid, ...descendantsOf(handle.holderPid)];
      const known = family.map((pid) => [pid, processStartTime(pid)]);
      expect(family.length).toBeGreaterThan(1);
      service.kill("SIGKILL");
      await service.exited;
      const alive = () => known.filter(([pid, start]) => isRunning(pid, start));
      await waitFor(() => alive().length === 0, "the lifeline to end the sandbox");
      await waitFor(async () => (await leftovers(handle)).length === 0, "nothing to be left");
      const reaped = await reapSandboxes(dirname(handle.dir));
      expect(reaped).toEqual({ sandboxes: [basename(handle.dir)], killed: [], survivors: [] });
      expect(existsSync(handle.dir)).toBe(false);
      await removeTree(dataDir);
    });
  });
}

describe("reaper: records", () => {
  test("a pid that was given to another process is not killed", async () => {
    using other = bystander();
    const pids = { holderPid: other.pid, starterPid: other.pid };
    await using it = await fakeRoot({ ...pids, holderStartTime: "1", starterStartTime: "1" });
    expect(await reapSandboxes(it.root)).toMatchObject({ sandboxes: ["left"], survivors: [] });
    expect(other.runs()).toBe(true);
  });

  test("after a reboot no pid is killed, whatever the record says", async () => {
    using other = bystander();
    const times = { holderStartTime: other.startTime, starterStartTime: other.startTime };
    const pids = { holderPid: other.pid, starterPid: other.pid };
    await using it = await fakeRoot({ ...pids, ...times, bootId: "another boot" });
    expect(await reapSandboxes(it.root)).toMatchObject({ sandboxes: ["left"], killed: [] });
    expect(other.runs()).toBe(true);
    expect(readdirSync(it.root)).toEqual([]);
  });

  test("a record that is torn or missing costs only its folder", async () => {
    await using it = await fakeRoot({});
    writeFileSync(join(it.root, "left", "record.json"), '{"bootId":');
    mkdirSync(join(it.root, "empty"));
    const { sandboxes } = await reapSandboxes(it.root);
    expect(sandboxes.sort()).toEqual(["empty", "left"]);
    expect(readdirSync(it.root)).toEqual([]);
  });

  test("the trash is emptied whatever its modes, and links in it are not followed", async () => {
    await using it = await fakeRoot({});
    const outside = await mkdtemp(join(tmpdir(), "rolloutd-outside-"));
    writeFileSync(join(outside, "file"), "kept");
    const shut = join(it.root, ".trash", "old", "work", "work");
    mkdirSync(join(shut, "inner"), { recursive: true });
    symlinkSync(outside, join(shut, "link"));
    symlinkSync(outside, join(it.root, "left", "link"));
    chmodSync(shut, 0);
    await reapSandboxes(it.root);
    expect(readdirSync(it.root)).toEqual([]);
    expect(readdirSync(outside)).toEqual(["file"]);
    await removeTree(outside);
  });

  test("a folder of sandboxes that is not there yet is made", async () => {
    await using it = await fakeRoot({});
    const root = join(it.root, "new");
    expect(await reapSandboxes(root)).toEqual({ sandboxes: [], killed: [], survivors: [] });
    expect(readdirSync(root)).toEqual([]);
  });
});

test("an end that died with its predecessor halfway is taken over at once", async () => {
  await using bundle = await setup("host");
  const { handle } = await bundle.open();
  writeFileSync(join(handle.dir, "ended"), "");
  const beginMs = performance.now();
  const reaped = await reapSandboxes(dirname(handle.dir));
  expect(reaped.survivors).toEqual([]);
  expect(await leftovers(handle)).toEqual([]);
  // An end by somebody who is alive would be waited for, for 10 s.
  expect(performance.now() - beginMs).toBeLessThan(5_000);
});

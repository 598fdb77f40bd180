import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import {
  delegatedCgroup,
  inGroup,
  killedForMemory,
  killGroup,
  removeGroup,
  takeCgroup,
} from "../../src/sandbox/cgroup.ts";
import { endSandbox } from "../../src/sandbox/end.ts";
import { watchSandbox } from "../../src/sandbox/watchdog.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";
import { DAEMONISE, LIMITS, setup as sandboxes } from "./setup.ts";

/** A folder that looks like the cgroup tree of a service. */
function setup(changes: { controllers?: string; procs?: string; own?: string } = {}) {
  const dir = tempDir();
  const own = dir.file("tree/job/service");
  mkdirSync(own, { recursive: true });
  writeFileSync(`${own}/cgroup.controllers`, changes.controllers ?? "cpu memory pids\n");
  writeFileSync(`${own}/cgroup.procs`, changes.procs ?? "123\n");
  writeFileSync(`${own}/cgroup.subtree_control`, "");
  const mount = `30 29 0:26 / ${dir.file("tree")} rw,nosuid - cgroup2 cgroup rw`;
  writeFileSync(dir.file("mountinfo"), `29 1 8:1 / / rw - ext4 /dev/sda1 rw\n${mount}\n`);
  writeFileSync(dir.file("cgroup"), changes.own ?? "4:memory:/old\n0::/job/service\n");
  const files = { mountinfo: dir.file("mountinfo"), cgroup: dir.file("cgroup") };
  return { own, files, [Symbol.dispose]: dir[Symbol.dispose] };
}

describe("the service's own cgroup", () => {
  test("is found where limits may be set below it", () => {
    using t = setup();
    expect(delegatedCgroup(t.files)).toEqual({ path: t.own });
  });

  test.each([
    ["has no memory and no pids controller", { controllers: "hugetlb\n" }],
    ["has no pids controller", { controllers: "memory cpu\n" }],
    ["has other processes", { procs: "123\n124\n" }],
    ["no cgroup v2", { own: "4:memory:/old\n" }],
    ["no memory and no pids", { own: "0::/another\n" }],
  ])("is not used where it %s", (why, changes) => {
    using t = setup(changes);
    expect(delegatedCgroup(t.files)).toEqual({ why: expect.stringContaining(why) });
  });

  test("is not used where the node has none", () => {
    const nowhere = { mountinfo: "/no/such", cgroup: "/no/such" };
    expect(delegatedCgroup(nowhere)).toEqual({ why: "no cgroup v2 is mounted" });
  });
});

/** A plain folder takes every text and kills nobody: what the kernel makes of them is not tried here. */
describe("on a folder that looks like a cgroup", () => {
  test("the service moves below it and switches the controllers on", () => {
    using t = setup();
    expect(takeCgroup(t.files, 123)).toEqual({ path: t.own });
    expect(readFileSync(join(t.own, "service/cgroup.procs"), "utf8")).toBe("123");
    expect(readFileSync(join(t.own, "cgroup.subtree_control"), "utf8")).toBe("+memory +pids");
  });

  test("a service that may not switch them on stays where it is", () => {
    using t = setup();
    rmSync(join(t.own, "cgroup.subtree_control"));
    expect(takeCgroup(t.files, 123)).toEqual({ why: "ours is not delegated to this user" });
    expect(existsSync(join(t.own, "service"))).toBe(false);
  });

  test("a sandbox starts in a group with its limits, is killed by it, and takes it along", async () => {
    using t = setup();
    await using bundle = await sandboxes("bubblewrap", { cgroups: t.own });
    const handle = await bundle.start();
    const group = join(t.own, `sandbox-${basename(handle.dir)}`);
    expect(handle.cgroup).toBe(group);
    const has = (file: string) => readFileSync(join(group, file), "utf8").trim();
    expect(has("memory.max")).toBe(`${LIMITS.memoryBytes + LIMITS.tmpfsBytes}`);
    expect([has("pids.max"), has("memory.swap.max")]).toEqual([`${LIMITS.processes + 64}`, "0"]);
    expect(has("cgroup.procs")).toBe("0");
    using watch = watchSandbox(handle, LIMITS);
    writeFileSync(join(group, "memory.peak"), "4711\n");
    writeFileSync(join(group, "memory.events"), "low 0\noom 1\noom_kill 1\n");
    expect(killedForMemory(group)).toBe(4711);
    await waitFor(() => watch.crossed.aborted, "the watchdog to see it");
    expect(watch.crossed.reason).toMatchObject({ code: "oom" });
    expect(watch.crossed.reason.message).toContain("had 4711 bytes of memory");
    expect(has("cgroup.kill")).toBe("1");
    const ended = endSandbox(handle);
    rmSync(group, { recursive: true });
    expect(await ended).toMatchObject({ clean: true });
  });

  test("a kill for memory is told from files as kernels write them, the oldest without a peak", () => {
    using t = setup();
    expect(killedForMemory(t.own)).toBeNull();
    const events = (kills: number) => `low 0\nhigh 0\nmax 2408\noom 1\noom_kill ${kills}\n`;
    writeFileSync(join(t.own, "memory.events"), events(0));
    writeFileSync(join(t.own, "memory.max"), "120000000\n");
    expect(killedForMemory(t.own)).toBeNull();
    writeFileSync(join(t.own, "memory.events"), `${events(1)}oom_group_kill 0\n`);
    expect(killedForMemory(t.own)).toBe(120_000_000);
    writeFileSync(join(t.own, "memory.peak"), "119996416\n");
    expect(killedForMemory(t.own)).toBe(119_996_416);
  });

  test("an end that can't remove the group says so", async () => {
    using t = setup();
    await using bundle = await sandboxes("bubblewrap", { cgroups: t.own });
    const handle = await bundle.start();
    expect(await endSandbox(handle)).toMatchObject({ clean: false, survivors: [] });
  });

  test("a group that can't be made fails the start", async () => {
    using t = setup();
    await using bundle = await sandboxes("bubblewrap", { cgroups: join(t.own, "none") });
    const error = await bundle.start().catch((error) => error);
    expect(error).toMatchObject({ code: "sandbox_start_failed" });
    expect(error.message).toContain("the cgroup");
  });
});

/** A group of the kernel's own, below the root of the mount; null where we may make none. */
function realGroup(): string | null {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8");
  const point = /^\d+ \d+ \S+ \S+ (\S+) .* - cgroup2 /m.exec(mounts)?.[1];
  try {
    return point === undefined ? null : mkdtempSync(join(point, "rolloutd-test-"));
  } catch {
    return null;
  }
}

const kernels = realGroup();

if (kernels !== null) {
  test("the kernel's own group holds what starts in it, kills whoever left its session, and goes when they have", async () => {
    const starter = Bun.spawn(inGroup(kernels, [...DAEMONISE]), {
      stdio: ["ignore", "ignore", "ignore"],
    });
    await starter.exited;
    const members = () => readFileSync(join(kernels, "cgroup.procs"), "utf8").trim();
    await waitFor(() => /^\d+$/.test(members()), "its daemon to be alone in the group");
    expect(removeGroup(kernels)).toBe(false);
    killGroup(kernels);
    await waitFor(() => removeGroup(kernels), "the group to be gone");
    expect(existsSync(kernels)).toBe(false);
  });
}

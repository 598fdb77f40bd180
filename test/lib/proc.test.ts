import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import {
  bootId,
  childrenOf,
  descendantsOf,
  isRunning,
  killProcess,
  namespacePids,
  placeOf,
  processStartTime,
} from "../../src/lib/proc.ts";
import { lookAtProcesses, ProcessLook } from "../../src/lib/process-look.ts";
import { waitFor } from "../support/wait-for.ts";

/** A shell in a session of its own, with a child and a grandchild; all gone at the end of scope. */
async function family() {
  const script = "bash -c 'sleep 600 & wait' & wait";
  const child = Bun.spawn(["setsid", "bash", "-c", script], {
    stdio: ["ignore", "ignore", "ignore"],
  });
  const pids = await waitFor(() => {
    const below = descendantsOf(child.pid);
    return below.length === 2 && below;
  }, "a child and a grandchild");
  return {
    pid: child.pid,
    below: pids,
    child,
    async [Symbol.asyncDispose]() {
      for (const pid of [child.pid, ...pids]) killProcess(pid);
      await child.exited;
    },
  };
}

describe("a process", () => {
  test("is known by its number and its start, and by that only while it runs", async () => {
    await using t = await family();
    const startTime = processStartTime(t.pid);
    // In hundredths of a second since boot, on every Linux.
    const upMs = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000;
    const ageMs = upMs - Number(startTime) * 10;
    expect([ageMs > -20, ageMs < 60_000]).toEqual([true, true]);
    expect(isRunning(t.pid, startTime as string)).toBe(true);
    expect(isRunning(t.pid, `${Number(startTime) + 1}`)).toBe(false);
    expect(killProcess(t.pid)).toBe(true);
    await t.child.exited;
    expect([processStartTime(t.pid), isRunning(t.pid, startTime as string)]).toEqual([null, false]);
    expect(killProcess(t.pid)).toBe(false);
  });

  test("that nobody has waited for yet counts as gone", async () => {
    const script = "sleep 0 & exec sleep 600";
    await using child = Bun.spawn(["bash", "-c", script], {
      stdio: ["ignore", "ignore", "ignore"],
    });
    const [zombie] = await waitFor(() => {
      const children = childrenOf(child.pid);
      return children.length === 1 && children;
    }, "the child");
    await waitFor(() => processStartTime(zombie as number) === null, "its end");
    expect(childrenOf(child.pid)).toEqual([zombie as number]);
  });

  test("of an impossible number is none", () => {
    expect([processStartTime(0), processStartTime(-1)]).toEqual([null, null]);
    expect([childrenOf(0), namespacePids(0)]).toEqual([[], []]);
  });

  test("whose name looks like fields of its status is read correctly", async () => {
    const script = 'printf ") R 1 1 1" > /proc/self/comm; read -r _';
    await using child = Bun.spawn(["setsid", "bash", "-c", script], {
      stdio: ["pipe", "ignore", "ignore"],
    });
    const comm = Bun.file(`/proc/${child.pid}/comm`);
    await waitFor(async () => (await comm.text()).startsWith(") R"), "its name");
    expect(new ProcessLook().inSession(child.pid)).toEqual([child.pid]);
    expect(processStartTime(child.pid)).toMatch(/^\d{2,}$/);
  });
});

test("descendants are found at every depth, and so is everything in a session", async () => {
  await using t = await family();
  const [son, grandson] = t.below as [number, number];
  expect([childrenOf(t.pid), childrenOf(son), childrenOf(grandson)]).toEqual([
    [son],
    [grandson],
    [],
  ]);
  expect([placeOf(grandson)?.parent, placeOf(son)?.parent]).toEqual([son, t.pid]);
  expect(new Set(new ProcessLook().inSession(t.pid))).toEqual(new Set([t.pid, ...t.below]));
});

test("a process has its number in each namespace, ours first", () => {
  expect(namespacePids(process.pid)[0]).toBe(process.pid);
});

test("processes that mount something below a folder are found by the folder's name", async () => {
  // `/dev/pts` is mounted wherever there are terminals.
  expect(new ProcessLook().mounting("dev")).toContain(process.pid);
  expect(new ProcessLook().mounting("de")).not.toContain(process.pid);
});

test("who asks at once shares a look, and who asks later gets one that sees what was done", async () => {
  await using t = await family();
  const [first, second] = await Promise.all([lookAtProcesses(), lookAtProcesses()]);
  expect(first).toBe(second);
  expect(first.inSession(t.pid)).toContain(t.below[1] as number);
  const isOver = (pid: number) => processStartTime(pid) === null;
  for (const pid of [t.pid, ...t.below]) killProcess(pid);
  await waitFor(() => [t.pid, ...t.below].every(isOver), "their end");
  expect((await lookAtProcesses()).inSession(t.pid)).toEqual([]);
});

test("a boot has an id, the same for everybody", async () => {
  expect(bootId()).toMatch(/^[0-9a-f-]{36}$/);
  expect(bootId()).toBe(bootId());
});

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { endSandbox, killSandbox } from "../../src/sandbox/end.ts";
import { INSIDE } from "../../src/sandbox/environment.ts";
import type { DriverName, SandboxSpec, WatchLimits } from "../../src/sandbox/sandbox.ts";
import { watchParked, watchSandbox } from "../../src/sandbox/watchdog.ts";
import { waitFor } from "../support/wait-for.ts";
import { EXEC, LIMITS, leftovers, setup } from "./setup.ts";
import { asUnprivilegedUser } from "./unprivileged.ts";

setDefaultTimeout(60_000);

const MB = 1024 * 1024;
const DRIVERS: DriverName[] = ["host", "apptainer", "bubblewrap"];

/** Each bounded by itself, so that a watchdog that fails does not cost the machine. */
const FAST_HOG = "x = b'x' * (1500 * 1024 * 1024); import time; time.sleep(100)";
const SLOW_HOG = `import time
hoard = []
for _ in range(75):
    hoard.append(b'x' * (20 * 1024 * 1024))
    time.sleep(0.02)
time.sleep(100)`;
const MANY_HOGS = `import os, time
for _ in range(10):
    if os.fork() == 0:
        x = b'x' * (60 * 1024 * 1024)
        break
time.sleep(100)`;
const FAMILY = `import os, time
x = b'x' * (150 * 1024 * 1024)
for _ in range(5):
    if os.fork() == 0:
        break
else:
    open('ready', 'w')
time.sleep(100)`;
const FORK_BOMB = `import os, time
for _ in range(600):
    try:
        if os.fork() == 0:
            break
    except OSError:
        time.sleep(0.01)
time.sleep(100)`;
const DISK_HOG =
  'cd "$0"; i=0; while [ $i -lt 60 ]; do head -c 10000000 /dev/zero >f$i; i=$((i+1)); sleep 0.02; done';

describe.each(DRIVERS)("%s:", (driver) => {
  /** A watched sandbox; `ends` starts a command and gives what the watchdog says and what is left. */
  async function watched(limits: Partial<WatchLimits>, changes: Partial<SandboxSpec> = {}) {
    const bundle = await setup(driver);
    const all = { ...LIMITS, ...limits };
    const sandbox = await bundle.open({ ...changes, limits: all });
    const watch = watchSandbox(sandbox.handle, all);
    return {
      sandbox,
      watch,
      async ends(argv: string[]) {
        sandbox.exec(argv, { ...EXEC, timeoutMs: 60_000 }).catch(() => {});
        await waitFor(() => watch.crossed.aborted, "the watchdog to end it");
        await waitFor(() => sandbox.died.aborted, "its processes to be killed");
        const { clean } = await endSandbox(sandbox.handle);
        const left = await leftovers(sandbox.handle);
        const { code, message } = watch.crossed.reason;
        return { code, message, clean, left, folder: existsSync(sandbox.handle.dir) };
      },
      async [Symbol.asyncDispose]() {
        watch[Symbol.dispose]();
        await bundle[Symbol.asyncDispose]();
      },
    };
  }

  const gone = { clean: true, left: [], folder: false };

  test.each([
    ["fills it at once", FAST_HOG],
    ["fills it slowly", SLOW_HOG],
    ["shares the work among processes", MANY_HOGS],
  ])("what takes too much memory ends with its sandbox: one that %s", async (_how, code) => {
    await using it = await watched({ memoryBytes: 300 * MB });
    const end = await it.ends(["python3", "-c", code]);
    expect(end).toMatchObject({ code: "oom", ...gone });
    const peak = Number(
      end.message.match(/had (\d+) bytes of memory, and may have 314572800$/)?.[1],
    );
    expect(peak).toBeGreaterThan(300 * MB);
  });

  test("memory that processes share counts once", async () => {
    await using it = await watched({ memoryBytes: 300 * MB });
    const family = it.sandbox.exec(["python3", "-c", FAMILY], { ...EXEC, timeoutMs: 1500 });
    const ready = () =>
      it.sandbox.readFile("ready", 1).then(
        () => true,
        () => false,
      );
    await waitFor(ready, "the family");
    expect(await family).toMatchObject({ timedOut: true });
    expect(it.watch.crossed.reason).toBeUndefined();
  });

  test("a fork bomb ends with its sandbox", async () => {
    await using it = await watched({ processes: 150 });
    const end = await it.ends(["python3", "-c", FORK_BOMB]);
    expect(end).toMatchObject({ code: "pids_limit", ...gone });
    expect(end.message).toMatch(/^the sandbox had \d+ processes and threads, and may have 150$/);
  });

  test("threads count as processes", async () => {
    await using it = await watched({ processes: 60 });
    const code = `import threading, time
for _ in range(100):
    try:
        threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
    except RuntimeError:
        pass
time.sleep(100)`;
    expect(await it.ends(["python3", "-c", code])).toMatchObject({ code: "pids_limit", ...gone });
  });

  test("what writes too much to the disk ends with its sandbox", async () => {
    await using it = await watched({ diskBytes: 50 * MB }, { writable: "overlay" });
    const end = await it.ends(["sh", "-c", DISK_HOG, driver === "host" ? "." : INSIDE.io]);
    expect(end).toMatchObject({ code: "disk_limit", ...gone });
    expect(end.message).toMatch(/^the sandbox had \d+ bytes on disk, and may have 52428800$/);
  });

  test.each([
    ["without a name", `f = open("x", "wb"); os.unlink("x"); fill(f)`, "bytes"],
    ["of no text", `f = open(b"\\xff", "wb"); fill(f)`, "bytes"],
    ["without bytes", "for i in range(5000): open(str(i), 'w').close()", "files"],
  ])("files %s count, too", async (_which, code, unit) => {
    await using it = await watched({ diskBytes: 50 * MB }, { writable: "overlay" });
    const script = `import os, time
def fill(f):
    for _ in range(60): f.write(b"x" * 1000000)
    f.flush()
if "host" != "${driver}": os.chdir("${INSIDE.io}")
${code}
time.sleep(100)`;
    const end = await it.ends(["python3", "-c", script]);
    expect(end).toMatchObject({ code: "disk_limit", ...gone });
    expect(end.message).toContain(` ${unit} on disk`);
  });

  test("shared memory without a name counts, and once where it is mapped", async () => {
    await using it = await watched({ memoryBytes: 300 * MB });
    const hold = `import mmap, time
m = mmap.mmap(-1, 200 * 1048576)
for at in range(0, len(m), 4096): m[at] = 1
time.sleep(1.5)`;
    expect(await it.sandbox.exec(["python3", "-c", hold], EXEC)).toMatchObject({ exitCode: 0 });
    expect(it.watch.crossed.reason).toBeUndefined();
    const more = hold.replace("200", "400").replace("1.5", "100");
    expect(await it.ends(["python3", "-c", more])).toMatchObject({ code: "oom", ...gone });
  });

  test("one that nobody is attached to is watched too, and its death is told", async () => {
    await using bundle = await setup(driver);
    const limits = { ...LIMITS, memoryBytes: 300 * MB };
    const hog = await bundle.open({ limits });
    hog.exec(["python3", "-c", SLOW_HOG], EXEC).catch(() => {});
    using beyond = watchParked(hog.handle, limits);
    await waitFor(() => beyond.crossed.aborted, "the watchdog to end it");
    expect(beyond.crossed.reason).toMatchObject({ code: "oom" });
    const idle = await bundle.start();
    using death = watchParked(idle, limits);
    killSandbox(idle);
    await waitFor(() => death.crossed.aborted, "its death to be told");
    expect(death.crossed.reason).toMatchObject({ code: "sandbox_died" });
  });

  test("a sandbox within its limits is left alone, and its watch ends with it", async () => {
    await using it = await watched({});
    expect(await it.sandbox.exec(["echo", "fine"], EXEC)).toMatchObject({ stdout: "fine\n" });
    await endSandbox(it.sandbox.handle);
    expect(it.watch.crossed.reason).toBeUndefined();
  });
});

if (process.getuid?.() === 0) {
  // The kernel holds the processes of others at their limit, where the watchdog finds them.
  test("an unprivileged user's sandboxes end the same way", async () => {
    const only = "test/sandbox/watchdog.test.ts -t apptainer:";
    const { exitCode, output } = await asUnprivilegedUser(only);
    expect({ exitCode, output: exitCode === 0 ? "" : output }).toEqual({ exitCode: 0, output: "" });
  }, 300_000);
}

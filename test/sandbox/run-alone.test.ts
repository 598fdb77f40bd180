import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { descendantsOf } from "../../src/lib/proc.ts";
import type { AloneOptions, AloneResult, Sandbox } from "../../src/sandbox/sandbox.ts";
import { type Bundle, failure, setup } from "./setup.ts";

const LIMITS = {
  cpuMs: 1000,
  workMs: 2000,
  wallMs: 60_000,
  addressBytes: 512 << 20,
  stdin: "",
  maxOutputBytes: 100_000,
};

/** Uses as much of the processor as it is told, in seconds. */
const BURN = "import os, time\ndef burn(s):\n    while time.process_time() < s: pass\n";

for (const driver of ["bubblewrap", "apptainer"] as const) {
  describe(`submitted work that runs alone, with ${driver}`, () => {
    let bundle: Bundle;
    let sandbox: Sandbox;
    beforeAll(async () => {
      bundle = await setup(driver);
      sandbox = await bundle.open();
    });
    afterAll(() => bundle[Symbol.asyncDispose]());

    const python = (code: string, options: Partial<AloneOptions> = {}): Promise<AloneResult> =>
      sandbox.runAlone(["python3", "-B", "-c", code], { ...LIMITS, ...options });

    test("is told with its output, its end and its time, and leaves a clean sandbox", async () => {
      const run = await python("print(input()); import sys; sys.exit(3)", { stdin: "hello\n" });
      expect(run).toMatchObject({ stdout: "hello\n", exitCode: 3, end: "itself", clean: true });
      expect(run.times.cpuMs).toBeGreaterThan(0);
      expect(run.times.wallMs).toBeGreaterThanOrEqual(run.times.waitedMs);
    });

    test("ends with all that it started, whatever that did to be left", async () => {
      const daemon = `import os, signal, time
for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: time.sleep(1)
        os._exit(0)
print("done")`;
      const run = await python(daemon);
      expect(run).toMatchObject({ stdout: "done\n", exitCode: 0, end: "itself", clean: true });
      expect(descendantsOf(sandbox.handle.holderPid)).toEqual([]);
    });

    test.each([
      ["by itself", `${BURN}burn(60)`],
      ["by children", `${BURN}\nfor _ in range(3):\n  if os.fork() == 0: burn(60)\nos.wait()`],
      [
        "by short children for which nobody waits",
        `${BURN}import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        burn(0.2)
        os._exit(0)
    time.sleep(0.1)`,
      ],
    ])("has its time of the processor %s, over all processes", async (_how, code) => {
      const run = await python(code, { cpuMs: 500, workMs: 60_000 });
      expect(run).toMatchObject({ end: "cpu", exitCode: null, clean: true });
    });

    test.each([
      ["sleeps", "import time; time.sleep(60)"],
      ["reads what never comes", "import os; r, w = os.pipe(); os.read(r, 1)"],
      ["waits for itself", "import threading; a = threading.Lock(); a.acquire(); a.acquire()"],
      [
        "waits for what it has vforked, which looks like a disk",
        "import ctypes, os\nif ctypes.CDLL(None).syscall(56, 0x4000 | 17, 0, 0, 0, 0) == 0:\n    import time; time.sleep(60)",
      ],
      ["stops itself", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"],
      ["polls", "import time\nwhile True: time.sleep(0.01)"],
    ])("hangs by its own fault where it %s", async (_how, code) => {
      const run = await python(code, { workMs: 400 });
      expect(run).toMatchObject({ end: "hung", exitCode: null, clean: true });
      expect(run.times.wallMs - run.times.waitedMs).toBeGreaterThanOrEqual(400);
    });

    test.each([
      ["a file", "open('/tmp/note', 'w').write('1')"],
      ["an empty file of the home folder", "open('x', 'w')"],
      ["a folder of the image's with another name", "import os; os.rename('/etc/hosts', '/etc/h')"],
      ["a file of the image's that it changed", "open('/etc/hosts', 'a').write('1')"],
      ["a file of the image's that is gone", "import os; os.remove('/etc/hosts')"],
      ["a link", "import os; os.symlink('/x', '/var/tmp/y')"],
      ["memory with a name", "open('/dev/shm/note', 'w')"],
      ["a file beside the sockets", "open('/run/io/note', 'w')"],
      ["System V's memory", "import ctypes; assert ctypes.CDLL(None).shmget(77, 100, 0o1600) >= 0"],
    ])("is seen to have left %s", async (_what, code) => {
      const fresh = await bundle.open();
      const run = await fresh.runAlone(["python3", "-B", "-c", code], LIMITS);
      expect(run).toMatchObject({ exitCode: 0, clean: false });
    });

    test("can't be kept from its end, nor its limits from being set, by what it replaced", async () => {
      const fresh = await bundle.open();
      const shim = `for name in ('bash', 'sh', 'prlimit'):
    import shutil
    path = shutil.which(name)
    if path: open(path, 'w').write('#!/bin/true')`;
      await fresh.runAlone(["python3", "-c", shim], LIMITS);
      const alloc = "import resource; print(resource.getrlimit(resource.RLIMIT_AS)[1])";
      const { stdout } = await fresh.runAlone(["python3", "-c", alloc], LIMITS);
      expect(Number(stdout)).toBe(LIMITS.addressBytes);
      await fresh.runAlone(["python3", "-c", "import os, sys; os.remove(sys.executable)"], LIMITS);
      const gone = fresh.runAlone(["python3", "-c", "1"], LIMITS);
      expect(await failure(gone)).toMatchObject({ code: "image_invalid" });
    });

    test("reads what it was given, and can't change it", async () => {
      const path = sandbox.give("given.txt", "as it was");
      const code = `import sys
try: open(sys.argv[1], 'w')
except OSError as error: print(error.errno)
print(open(sys.argv[1]).read())`;
      const run = await sandbox.runAlone(["python3", "-c", code, path], LIMITS);
      expect(run.stdout).toMatch(/^(30|13)\nas it was\n$/);
      expect(existsSync(path)).toBe(false);
    });
  });
}

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { ServiceError } from "../../../src/errors.ts";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { gradeCode } from "../../../src/tasks/code/grade.ts";
import type { CodeInstance } from "../../../src/tasks/code/row.ts";
import type { CodeTest } from "../../../src/tasks/code/tests.ts";
import { type Bundle, setup } from "../../sandbox/setup.ts";
import { evalContext, TASK_SETTINGS } from "../../support/task-context.ts";

const LIMITS = { totalMs: 60_000, memoryBytes: 512 << 20, atOncePerThread: 8 };

/** Some of them start sandboxes by the dozen. */
setDefaultTimeout(60_000);

let bundle: Bundle;
beforeAll(async () => {
  bundle = await setup("bubblewrap");
});
afterAll(() => bundle[Symbol.asyncDispose]());

async function grade(
  solution: string,
  tests: CodeTest[],
  grading: "all" | "share" = "all",
  testTimeoutMs = 1000,
) {
  const instance: CodeInstance = { problem: "", tests, grading, testTimeoutMs };
  const opened: Sandbox[] = [];
  const renew = async () => {
    opened.push(await bundle.open());
    return opened.at(-1) as Sandbox;
  };
  const settings = { ...TASK_SETTINGS, tests: LIMITS };
  const context = evalContext({ sandbox: await renew(), settings, renew });
  return { ...(await gradeCode(instance, solution, context)), sandboxes: opened.length };
}

const BOOLEANS: CodeTest[] = Array.from({ length: 6 }, (_, index) => ({
  ...{ kind: "stdin", input: `${index}` },
  expected: index % 3 === 0 ? "YES" : "NO",
}));

describe("one guess a test", () => {
  test.each([
    ["a file of /tmp", "/tmp/seen"],
    ["a file of the home folder", "seen"],
    ["shared memory", "/dev/shm/seen"],
    ["a folder of the image", "/usr/lib/seen"],
    ["the folder of sockets", "/run/io/seen"],
  ])("whatever a program notes in %s", async (_where, path) => {
    const twice = `import os
key = "${path}" + input()
print("NO" if os.path.exists(key) else "YES")
open(key, "w")`;
    expect(await grade(twice, BOOLEANS)).toMatchObject({ reward: 0, rule: "test_wrong" });
    expect((await grade(twice, BOOLEANS, "share")).reward).toBe(2 / 6);
  });

  test.each([
    ["fails", "raise SystemExit(1)"],
    ["kills itself", "import signal; os.kill(os.getpid(), signal.SIGKILL)"],
    ["takes its time", "while True: pass"],
    ["fills its memory", "x = bytearray(1 << 40)"],
  ])("also where it %s at the first look", async (_how, first) => {
    const again = `import os
if not os.path.exists("/tmp/first"):
    open("/tmp/first", "w")
    ${first}
print("YES")`;
    expect((await grade(again, BOOLEANS.slice(0, 1))).reward).toBe(0);
  });

  test("with nothing left of the test before: no file, process, socket or memory", async () => {
    const marks = `import ctypes, os, socket, sys, time
libc = ctypes.CDLL(None)
def found():
    for path in ("/tmp/m", "/var/tmp/m", "/dev/shm/m", "/run/io/m", "m", "/usr/lib/m", "/etc/m"):
        if os.path.exists(path): return path
    if libc.shmget(77, 100, 0) >= 0: return "shm"
    if len([p for p in os.listdir("/proc") if p.isdigit()]) > 2: return "process"
    try:
        s = socket.socket(socket.AF_UNIX); s.connect("\\0mark"); return "socket"
    except OSError: pass
seen = found()
which = int(input())
for index, path in enumerate(("/tmp/m", "/var/tmp/m", "/dev/shm/m", "/run/io/m", "m", "/usr/lib/m", "/etc/m")):
    if index == which: open(path, "w")
if which == 7: libc.shmget(77, 100, 0o1666)
if which == 8 and os.fork() == 0:
    os.setsid()
    s = socket.socket(socket.AF_UNIX); s.bind("\\0mark"); s.listen()
    os.close(0), os.close(1), os.close(2)
    time.sleep(60)
print(seen)`;
    const tests = Array.from({ length: 10 }, (_, index) => ({
      ...{ kind: "stdin" as const, input: `${index}`, expected: "None" },
    }));
    expect(await grade(marks, tests)).toMatchObject({ reward: 1, sandboxes: 9 });
  });

  test("of which none learns what its neighbours are asked", async () => {
    const look = `import glob, os
me = str(os.getpid())
print([p for p in os.listdir("/proc") if p.isdigit() and p not in ("1", me)])
input()`;
    const tests: CodeTest[] = [1, 2, 3].map((input) => ({
      ...{ kind: "stdin", input: `${input}`, expected: "[]" },
    }));
    expect(await grade(look, tests)).toMatchObject({ reward: 1 });
  });
});

/** The answer is wrong, so that nothing but the breaking could help. */
describe("what a program breaks is its 0, and no failure:", () => {
  test.each([
    ["bash", "os.remove(shutil.which('bash'))"],
    ["every shell", "[os.remove(p) for p in glob.glob('/bin/*sh')]"],
    ["Python", "os.remove(os.path.realpath(sys.executable))"],
    ["Python by a shim", "open(shutil.which('python3'), 'w').write('#!/bin/sh\\necho 1')"],
    ["Python's library", "shutil.rmtree(os.path.dirname(os.__file__), ignore_errors=True)"],
    ["a module that the driver imports", "open(json.__file__, 'w').write('1/0')"],
    [
      "the start of every Python",
      "open(os.path.dirname(os.__file__) + '/sitecustomize.py', 'w').write('import os; os._exit(0)')",
    ],
    ["the loader", "[os.remove(p) for p in glob.glob('/lib*/ld-*') + glob.glob('/lib/*/ld-*')]"],
    ["the whole file system", "[shutil.rmtree(p, ignore_errors=True) for p in glob.glob('/*')]"],
    ["/tmp", "shutil.rmtree('/tmp', ignore_errors=True); os.chmod('/tmp', 0)"],
    [
      "the home folder by a file",
      "os.chdir('/'); shutil.rmtree('/tmp/home'); open('/tmp/home', 'w')",
    ],
    ["the rights of folders", "[os.chmod(p, 0) for p in ('/usr', '/tmp', '/tmp/home')]"],
    ["the disk", "f = open('/tmp/full', 'wb')\nwhile True: f.write(b'x' * (1 << 20))"],
    ["the names of the disk", "[open('/tmp/%d' % i, 'w') for i in range(10**6)]"],
    ["the processes", "[os.fork() for _ in range(7)]; time.sleep(0.3)"],
    ["its parents and neighbours", "os.kill(-1, 9)"],
    ["its own process by SIGKILL", "os.kill(os.getpid(), 9)"],
    ["PID 1", "[os.kill(1, s) for s in (15, 9, 11, 19)]; sys.exit(1)"],
    ["the descriptors", "os.closerange(0, 4096)"],
    ["the interpreter", "ctypes.string_at(0)"],
    [
      "its own limits",
      "[resource.setrlimit(r, (0, 0)) for r in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU, resource.RLIMIT_NPROC)]",
    ],
    ["its end", "atexit.register(lambda: time.sleep(60))"],
    ["its output", "[os.write(2, b'x' * 65536) for _ in range(200)]"],
    ["its own start", "sys.stderr.write('began\\n'); os._exit(0)"],
  ])("%s", async (_what, breaks) => {
    const lie = `import atexit, ctypes, glob, json, os, resource, shutil, sys, time
print("no", flush=True)
try:
    ${breaks.replaceAll("\n", "\n    ")}
except Exception: pass`;
    for (const grading of ["all", "share"] as const) {
      const { reward, reason } = await grade(lie, BOOLEANS.slice(0, 2), grading, 400);
      expect([reward, reason]).toEqual([0, expect.stringContaining("0 of 2 tests passed")]);
    }
  });

  test("but right answers before it count as far as the row shares them", async () => {
    const later = `import os, sys
which = int(input())
print("YES" if which % 3 == 0 else "NO", flush=True)
if which == 1: os.remove(os.path.realpath(sys.executable))`;
    expect(await grade(later, BOOLEANS)).toMatchObject({ reward: 1, sandboxes: 2 });
  });
});

describe("what others break is a failure, and no 0:", () => {
  const killed = async (signal: NodeJS.Signals) => {
    const sandbox = await bundle.open();
    const tests: CodeTest[] = [{ kind: "stdin", input: "1", expected: "1" }];
    const instance: CodeInstance = { problem: "", tests, grading: "all", testTimeoutMs: 60_000 };
    const renew = () => bundle.open();
    const settings = { ...TASK_SETTINGS, tests: LIMITS };
    const context = evalContext({ sandbox, settings, renew, signal: sandbox.died });
    const grading = gradeCode(instance, "while True: pass", context).catch((error) => error);
    process.kill(sandbox.handle.holderPid, signal);
    return await grading;
  };

  test.each(["SIGKILL", "SIGTERM"] as const)("PID 1, by %s from outside", async (signal) => {
    const error = await killed(signal);
    expect(error).toBeInstanceOf(ServiceError);
    expect(error).toMatchObject({ code: "sandbox_died" });
  });

  test("an image without Python", async () => {
    const sandbox = await bundle.open();
    await sandbox.exec(["bash", "-c", 'rm "$(realpath "$(command -v python3)")"'], {
      ...{ timeoutMs: 5000, maxOutputBytes: 1000 },
    });
    const context = evalContext({ sandbox, renew: () => bundle.open() });
    const instance: CodeInstance = {
      ...{ problem: "", tests: BOOLEANS, grading: "all", testTimeoutMs: 1000 },
    };
    const error = await gradeCode(instance, "print(1)", context).catch((it) => it);
    expect(error).toMatchObject({ code: "image_invalid" });
  });

  test("a node that gives no processor for as long as EVAL has", async () => {
    const sandbox = await bundle.open();
    const untilMs = performance.now() + 300;
    const context = evalContext({ sandbox, renew: () => bundle.open(), untilMs });
    const instance: CodeInstance = {
      ...{ problem: "", tests: BOOLEANS, grading: "all", testTimeoutMs: 60_000 },
    };
    const error = await gradeCode(instance, "while True: pass", context).catch((it) => it);
    expect(error).toMatchObject({
      code: "node_exhausted",
      message: expect.stringContaining("too busy"),
    });
  });
});

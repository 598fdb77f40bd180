import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { accessSync, constants, existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { descendantsOf, killProcess } from "../../src/lib/proc.ts";
import { ProcessLook } from "../../src/lib/process-look.ts";
import { attachSandbox } from "../../src/sandbox/attach.ts";
import { endSandbox } from "../../src/sandbox/end.ts";
import type { DriverName, Sandbox, Shell } from "../../src/sandbox/sandbox.ts";
import { waitFor } from "../support/wait-for.ts";
import { HANGING_FUSE, STOPPED } from "./hostile.ts";
import { EXEC, failure, LIMITS, leftovers, NO_ABORT, setup } from "./setup.ts";

setDefaultTimeout(60_000);

const TREE = { maxEntries: 1000, maxBytes: 1_000_000 };
const DRIVERS: DriverName[] = ["host", "apptainer", "bubblewrap"];

function stoppedBelow(root: number): number {
  const isStopped = (pid: number) => {
    try {
      return /\) T /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
    } catch {
      return false;
    }
  };
  return descendantsOf(root).filter(isStopped).length;
}

describe.each(DRIVERS)("%s:", (driver) => {
  test("P7: processes that have stopped end with the sandbox", async () => {
    await using bundle = await setup(driver);
    const sandbox = await bundle.open();
    const { handle } = sandbox;
    sandbox.exec(STOPPED, EXEC).catch(() => {});
    await waitFor(() => stoppedBelow(handle.holderPid) >= 3, "them to stop");
    const startMs = performance.now();
    const { clean, survivors } = await endSandbox(handle);
    const left = await leftovers(handle);
    expect({ clean, survivors, left }).toEqual({ clean: true, survivors: [], left: [] });
    expect(performance.now() - startMs).toBeLessThan(4000);
  });

  test("a command that stops itself ends at its time limit, and a shell goes on", async () => {
    await using bundle = await setup(driver);
    const sandbox = await bundle.open();
    const limit = { ...EXEC, timeoutMs: 300 };
    const stopped = await sandbox.exec(["sh", "-c", "kill -STOP $$; echo never"], limit);
    expect(stopped).toMatchObject({ stdout: "", exitCode: null, timedOut: true });
    const shell = await sandbox.shell();
    const whole = await shell.run("kill -STOP 0; kill -STOP $$; echo never", limit);
    expect(whole.output).not.toContain("never\n");
    expect(await shell.run("echo here", EXEC)).toMatchObject({ output: "here\n", exitCode: 0 });
  });
});

/** Nobody may wait for it longer than for a sandbox that has died, whatever it was asked for. */
test("a supervisor that is stopped is found out, by whatever was asked of it, and leaves nothing", async () => {
  const ask: Record<string, (it: { sandbox: Sandbox; shell: Shell }) => Promise<unknown>> = {
    exec: ({ sandbox }) => sandbox.exec(["sleep", "100"], { ...EXEC, timeoutMs: 100_000 }),
    shell: ({ shell }) => shell.run("sleep 100", { ...EXEC, timeoutMs: 100_000 }),
    "new shell": ({ sandbox }) => sandbox.shell(),
    "new python": ({ sandbox }) => sandbox.python({ startTimeoutMs: 100_000 }),
    run: ({ sandbox }) => sandbox.run(["true"], { log: "/tmp/log", timeoutMs: 100_000 }),
    readFile: ({ sandbox }) => sandbox.readFile("/etc/passwd", 10_000),
    writeFile: ({ sandbox }) => sandbox.writeFile("/tmp/file", "text"),
    readTree: ({ sandbox }) => Array.fromAsync(sandbox.readTree("/tmp", TREE)),
    attach: async ({ sandbox }) => {
      killProcess(sandbox.handle.holderPid, "SIGCONT");
      await sandbox.detach();
      killProcess(sandbox.handle.holderPid, "SIGSTOP");
      return await attachSandbox(sandbox.handle);
    },
  };
  const found = DRIVERS.flatMap((driver) =>
    Object.entries(ask).map(async ([name, ask]) => {
      await using bundle = await setup(driver);
      const sandbox = await bundle.open();
      const shell = await sandbox.shell();
      killProcess(sandbox.handle.holderPid, "SIGSTOP");
      const { code, message } = await failure(ask({ sandbox, shell }));
      const { clean } = await endSandbox(sandbox.handle);
      return [driver, name, code, message.includes("does not answer"), clean];
    }),
  );
  const expected = DRIVERS.flatMap((driver) =>
    Object.keys(ask).map((name) => [driver, name, "sandbox_died", true, true]),
  );
  expect(await Promise.all(found)).toEqual(expected);
});

test("a start in which a process is stopped fails in its time, and leaves nothing", async () => {
  for (const driver of DRIVERS) {
    for (const depth of [1, 2, 3]) {
      await using bundle = await setup(driver);
      // Not what asks the programs for their versions, which has a time limit of its own.
      await endSandbox(await bundle.start());
      const before = new Set(descendantsOf(process.pid));
      const limits = { ...LIMITS, startTimeoutMs: 1500 };
      const outcome = bundle.driver
        .start(bundle.spec({ limits }), NO_ABORT)
        .catch((error) => error);
      const stop = () => {
        const fresh = descendantsOf(process.pid).filter((pid) => !before.has(pid));
        if (fresh.length >= depth)
          fresh.slice(0, depth).forEach((pid) => void killProcess(pid, "SIGSTOP"));
        return fresh.length >= depth;
      };
      const ended = { started: false };
      outcome.then(() => (ended.started = true));
      await waitFor(() => ended.started || stop(), "a process of the start");
      const result = await outcome;
      if (result instanceof Error) {
        expect(result).toMatchObject({ code: "sandbox_start_failed" });
        expect(readdirSync(join(bundle.dataDir, "sandboxes"))).toEqual([".trash"]);
      } else {
        // It had started before it was stopped.
        const { clean } = await endSandbox(result);
        expect([clean, await leftovers(result)]).toEqual([true, []]);
      }
      const look = new ProcessLook();
      expect(look.mounting(basename(bundle.dataDir))).toEqual([]);
    }
  }
});

test.each(["apptainer", "bubblewrap"] as const)(
  "%s: a RAM disk without room left is an error of what needs it, and of nothing else",
  async (driver) => {
    await using bundle = await setup(driver);
    const sandbox = await bundle.open();
    const fill = `import os
for folder in ("/dev/shm", "/tmp", "/var/tmp"):
    for i in range(100_000):
        try: open(f"{folder}/{i}", "wb").write(bytes(10_000_000 if i == 0 else 0))
        except OSError: break`;
    expect(await sandbox.exec(["python3", "-c", fill], EXEC)).toMatchObject({ exitCode: 0 });
    expect(await sandbox.exec(["echo", "fine"], EXEC)).toMatchObject({ stdout: "fine\n" });
    const shell = await sandbox.shell();
    const long = `echo ${"x".repeat(5000)} | wc -c; echo y >/tmp/new; ls /dev/shm | wc -l`;
    expect((await shell.run(long, EXEC)).output).toMatch(
      /^5001\n.*No space left on device\n\d+\n$/,
    );
    const python = await sandbox.python({ startTimeoutMs: 20_000 });
    expect(await python.run("1 + 1", EXEC)).toMatchObject({ output: "2\n" });
    expect(await failure(sandbox.writeFile("/tmp/file", "text"))).toMatchObject({ code: "ENOSPC" });
    const logged = failure(sandbox.run(["true"], { log: "/tmp/log", timeoutMs: 10_000 }));
    expect(await logged).toMatchObject({
      code: expect.stringMatching(/^(sandbox_broken|ENOSPC)$/),
    });
    expect((await sandbox.readFile("/etc/passwd", 100_000)).length).toBeGreaterThan(0);
    const beside = await bundle.open();
    expect(await beside.exec(["sh", "-c", "echo x >/tmp/x; cat /tmp/x"], EXEC)).toMatchObject({
      stdout: "x\n",
    });
    expect(await endSandbox(sandbox.handle)).toMatchObject({ clean: true });
  },
);

/** Where the device is to be had, a payload's own driver hangs as a helper of the starter's would. */
function hasFuse(): boolean {
  try {
    accessSync("/dev/fuse", constants.R_OK | constants.W_OK);
    return process.getuid?.() === 0;
  } catch {
    return false;
  }
}

if (hasFuse()) {
  test("who hangs in a file system whose server does not answer is told as such, ends with it, and delays no command", async () => {
    await using bundle = await setup("host");
    const sandbox = await bundle.open();
    const { handle } = sandbox;
    const hanging = failure(sandbox.exec(HANGING_FUSE, { ...EXEC, timeoutMs: 500 }));
    const asked = () => existsSync(join(handle.dir, "home", "asked"));
    await waitFor(asked, "a process to hang");
    expect(await sandbox.exec(["echo", "beside"], EXEC)).toMatchObject({ stdout: "beside\n" });
    expect(await hanging).toMatchObject({ code: "sandbox_died" });
    const { clean, survivors } = await endSandbox(handle);
    const left = await leftovers(handle);
    expect({ clean, survivors, left }).toEqual({ clean: true, survivors: [], left: [] });
  });
}

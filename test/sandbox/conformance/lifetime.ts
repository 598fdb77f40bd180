import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { closeFd, fdIdentity } from "../../../src/lib/libc.ts";
import { descendantsOf, isRunning, processStartTime } from "../../../src/lib/proc.ts";
import { attachSandbox } from "../../../src/sandbox/attach.ts";
import { endSandbox, killSandbox } from "../../../src/sandbox/end.ts";
import type { SandboxHandle } from "../../../src/sandbox/sandbox.ts";
import { waitFor } from "../../support/wait-for.ts";
import type { Setup } from "../conformance.ts";
import { DAEMONISE, EXEC, failure, leftovers, NO_ABORT } from "../setup.ts";

/** The sandbox's processes as the host sees them, so that their end can be told from a reused pid. */
function processes(holder: number): () => number[] {
  const known = [holder, ...descendantsOf(holder)].map(
    (pid) => [pid, processStartTime(pid)] as const,
  );
  return () => known.filter(([pid, start]) => start && isRunning(pid, start)).map(([pid]) => pid);
}

export function lifetimeTests(setup: Setup): void {
  test("a started sandbox's record holds its handle", async () => {
    await using bundle = await setup();
    const handle = await bundle.start();
    const record = JSON.parse(readFileSync(join(handle.dir, "record.json"), "utf8"));
    expect(record.handle).toEqual(handle);
    expect(isRunning(handle.holderPid, handle.holderStartTime)).toBe(true);
  });

  test("another thread takes over where one lets go, and the first again", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const python = await sandbox.python({ startTimeoutMs: 20_000 });
    await python.run("shared = 'kept'", EXEC);
    await sandbox.detach();
    const worker = new Worker(new URL("../attach-worker.ts", import.meta.url).href);
    const answer = new Promise((resolve) => (worker.onmessage = ({ data }) => resolve(data)));
    worker.postMessage(sandbox.handle);
    expect(await answer).toEqual({ stdout: "Linux\n", output: "42\n", cell: "'kept'\n" });
    worker.terminate();
    const again = await attachSandbox(sandbox.handle);
    const cell = await (await again.python({ startTimeoutMs: 20_000 })).run("thread", EXEC);
    expect(cell).toMatchObject({ output: "'worker'\n", restarted: false });
  });

  test("the end takes daemons along that left their session and ignore signals", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    await sandbox.exec(DAEMONISE, EXEC);
    const alive = processes(sandbox.handle.holderPid);
    expect(alive().length).toBeGreaterThan(1);
    const { clean, survivors } = await endSandbox(sandbox.handle);
    expect({ clean, survivors, alive: alive() }).toEqual({ clean: true, survivors: [], alive: [] });
  });

  test("after the end no process, mount, descriptor or folder is left", async () => {
    await using bundle = await setup();
    const fds = readdirSync("/proc/self/fd").length;
    const sandbox = await bundle.open();
    await sandbox.python({ startTimeoutMs: 20_000 });
    await sandbox.shell();
    const { handle } = sandbox;
    const { removed } = await endSandbox(handle);
    await removed;
    expect(await leftovers(handle)).toEqual([]);
    expect(readdirSync(dirname(handle.dir))).toEqual([".trash"]);
    expect(readdirSync(join(dirname(handle.dir), ".trash"))).toEqual([]);
    expect(fdIdentity(handle.controlFd)).not.toBe(handle.controlSocket);
    // The sockets of the attached thread close with a turn of the event loop of their own.
    await waitFor(() => readdirSync("/proc/self/fd").length <= fds, "the descriptors to be closed");
  });

  test("the close of the control descriptor ends everything", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    await sandbox.exec(DAEMONISE, EXEC);
    await sandbox.detach();
    const alive = processes(sandbox.handle.holderPid);
    expect(alive().length).toBeGreaterThan(1);
    closeFd(sandbox.handle.controlFd);
    await waitFor(() => alive().length === 0, "every process to end");
    await waitFor(async () => (await leftovers(sandbox.handle)).length === 0, "nothing to be left");
  });

  test("a sandbox does not keep the control descriptor of an older one open", async () => {
    await using bundle = await setup();
    const older = await bundle.start();
    const younger = await bundle.start();
    const alive = processes(older.holderPid);
    closeFd(older.controlFd);
    await waitFor(() => alive().length === 0, "the older one to end");
    expect(isRunning(younger.holderPid, younger.holderStartTime)).toBe(true);
  });

  test("several ends at once all find it clean", async () => {
    await using bundle = await setup();
    const handle = await bundle.start();
    const ends = [1, 2, 3].map(() => endSandbox(handle));
    const clean = (await Promise.all(ends)).map((report) => report.clean);
    expect(clean).toEqual([true, true, true]);
    expect(await endSandbox(handle)).toMatchObject({ clean: true });
  });

  test("a late end does not close a descriptor that took the number over", async () => {
    await using bundle = await setup();
    const first = await bundle.start();
    await endSandbox(first);
    const second = await bundle.start();
    await endSandbox({ ...first, dir: second.dir, controlFd: second.controlFd });
    expect(fdIdentity(second.controlFd)).toBe(second.controlSocket);
  });

  test("a kill is told to the attached thread and ends what waits there", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const shell = await sandbox.shell();
    const python = await sandbox.python({ startTimeoutMs: 20_000 });
    const waits = [
      sandbox.exec(["sleep", "100"], EXEC),
      shell.run("sleep 100", EXEC),
      python.run("import time; time.sleep(100)", EXEC),
    ].map((wait) => failure(wait));
    await waitFor(() => descendantsOf(sandbox.handle.holderPid).length > 3, "the commands");
    killSandbox(sandbox.handle);
    const codes = (await Promise.all(waits)).map((error) => error.code);
    expect(codes).toEqual(["sandbox_died", "sandbox_died", "sandbox_died"]);
    expect(sandbox.died.reason).toMatchObject({ code: "sandbox_died" });
    await sandbox.detach();
  });

  test("an ended sandbox cannot be attached to", async () => {
    await using bundle = await setup();
    const handle = await bundle.start();
    await endSandbox(handle);
    expect(await failure(attachSandbox(handle))).toMatchObject({ code: "sandbox_died" });
  });

  test("an aborted start leaves nothing, at whatever moment", async () => {
    await using bundle = await setup();
    for (const delayMs of [0, 1, 5, 20, 60]) {
      const abort = new AbortController();
      const started = bundle.driver.start(bundle.spec(), abort.signal);
      const outcome = started.catch((error) => error);
      setTimeout(() => abort.abort(new Error("cancelled")), delayMs);
      const result = await outcome;
      if (result instanceof Error) expect(result.message).toBe("cancelled");
      else await endSandbox(result);
    }
    const aborted = bundle.driver.start(bundle.spec(), AbortSignal.abort(new Error("before")));
    expect((await failure(aborted)).message).toBe("before");
    const root = join(bundle.dataDir, "sandboxes");
    expect(existsSync(root) ? readdirSync(root) : [".trash"]).toEqual([".trash"]);
  });

  test("the end of one sandbox does not touch another of the same or a longer id", async () => {
    await using bundle = await setup();
    const [ended, ...others] = [
      await bundle.start({ id: "job.1" }),
      await bundle.start({ id: "job.1" }),
      await bundle.start({ id: "job.10" }),
    ];
    await endSandbox(ended as SandboxHandle);
    for (const { holderPid, holderStartTime } of others) {
      expect(isRunning(holderPid, holderStartTime)).toBe(true);
    }
  });

  test("an id that is no plain file name is refused", async () => {
    await using bundle = await setup();
    const outside = await failure(bundle.driver.start(bundle.spec({ id: "../x" }), NO_ABORT));
    expect(outside).toMatchObject({ code: "instance_invalid" });
  });
}

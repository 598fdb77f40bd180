import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { descendantsOf } from "../../src/lib/proc.ts";
import { endSandbox } from "../../src/sandbox/end.ts";
import type { DriverName } from "../../src/sandbox/sandbox.ts";
import { waitFor } from "../support/wait-for.ts";
import { HANGING_FUSE, STOPPED } from "./hostile.ts";
import { EXEC, failure, leftovers, setup } from "./setup.ts";

setDefaultTimeout(60_000);

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

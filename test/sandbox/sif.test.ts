import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { descendantsOf, killProcess } from "../../src/lib/proc.ts";
import { ProcessLook } from "../../src/lib/process-look.ts";
import { endSandbox } from "../../src/sandbox/end.ts";
import type { DriverName, SandboxHandle } from "../../src/sandbox/sandbox.ts";
import { whyNoSifMount } from "../../src/sandbox/sif-mount.ts";
import { makeSif } from "../support/sif.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";
import { lifetimeTests } from "./conformance/lifetime.ts";
import { EXEC, failure, LIMITS, leftovers, NO_ABORT, required, setup } from "./setup.ts";
import { asUnprivilegedUser } from "./unprivileged.ts";

setDefaultTimeout(60_000);

const APPTAINER = required("ROLLOUTD_APPTAINER");
const DRIVERS: DriverName[] = ["apptainer", "bubblewrap"];
/** What the tests need none of, so that the image is packed sooner. */
const LEFT_OUT = ["-wildcards", "-e", "usr/share", "usr/lib/python3/dist-packages/sympy"];
const folder = tempDir();
const sif = folder.file("base.sif");

beforeAll(() => makeSif(APPTAINER, required("ROLLOUTD_IMAGE"), sif, LEFT_OUT));
afterAll(() => folder[Symbol.dispose]());

const start = (driver: DriverName) => setup(driver, {}, sif);

/** The host's pid of the program that serves a sandbox's image. */
function serverOf(handle: SandboxHandle): number {
  const members = new ProcessLook().inSession(handle.starterPid);
  const commands = members.map((pid) => readFileSync(`/proc/${pid}/cmdline`, "latin1"));
  const found = members.filter((_, index) => commands[index]?.includes(`\0${sif}\0/dev/fd/`));
  expect(found).toHaveLength(1);
  return found[0] as number;
}

const isSleep = (pid: number) => readFileSync(`/proc/${pid}/comm`, "utf8") === "sleep\n";

async function expectCleanEnd(handle: SandboxHandle): Promise<void> {
  const { clean, survivors, removed } = await endSandbox(handle);
  await removed;
  const left = await leftovers(handle);
  expect({ clean, survivors, left }).toEqual({ clean: true, survivors: [], left: [] });
}

/** A folder with Apptainer and what is to be taken for its squashfuse. */
function withServer(name: string, script: string): string {
  mkdirSync(folder.file(name));
  symlinkSync(APPTAINER, folder.file(`${name}/apptainer`));
  writeFileSync(folder.file(`${name}/squashfuse_ll`), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return folder.file(`${name}/apptainer`);
}

// Where the device is not to be had no SIF can be mounted, which the last of these tests looks at.
if (whyNoSifMount(APPTAINER) === null) {
  describe("apptainer, from a mounted SIF: lifetime", () =>
    lifetimeTests(() => start("apptainer")));

  describe.each(DRIVERS)("%s, from a mounted SIF:", (driver) => {
    test("files of the image are the sandbox's own to change, and the SIF stays as it was", async () => {
      const before = Bun.hash(readFileSync(sif));
      await using bundle = await start(driver);
      const sandbox = await bundle.open();
      const script = `set -e; echo more >>/etc/passwd; touch /usr/new; rm -r /etc/alternatives
mv /usr/games /usr/played; chmod 700 /etc; stat -c %u /etc/passwd /usr; id -u; ls /usr`;
      const { stdout, stderr, exitCode } = await sandbox.exec(["sh", "-c", script], EXEC);
      const uid = `${process.getuid?.()}`;
      const [owner, other, self, ...names] = stdout.split("\n");
      expect({ owner, other, self, exitCode, stderr }).toEqual({
        ...{ owner: uid, other: uid, self: uid },
        ...{ exitCode: 0, stderr: "" },
      });
      expect(names).toContain("new");
      expect(names).toContain("played");
      await expectCleanEnd(sandbox.handle);
      expect(Bun.hash(readFileSync(sif))).toBe(before);
    });

    test("a sandbox whose image is served no more has died, and leaves nothing", async () => {
      await using bundle = await start(driver);
      const sandbox = await bundle.open();
      const running = failure(sandbox.exec(["sleep", "100"], EXEC));
      await waitFor(() => descendantsOf(sandbox.handle.holderPid).some(isSleep), "it to run");
      killProcess(serverOf(sandbox.handle));
      expect(await running).toMatchObject({ code: "sandbox_died" });
      expect(sandbox.died.aborted).toBe(true);
      await expectCleanEnd(sandbox.handle);
    });

    test("a server that hangs costs a command its time, and the end little", async () => {
      await using bundle = await start(driver);
      const sandbox = await bundle.open();
      killProcess(serverOf(sandbox.handle), "SIGSTOP");
      const beginMs = performance.now();
      const late = { ...EXEC, timeoutMs: 500 };
      const hanging = sandbox.exec(["ls", "-lR", "/usr/lib"], late).catch((error) => error);
      // Who waits for an answer to what the server has read can't be killed, others can.
      const outcome = await hanging;
      expect(outcome.timedOut || outcome.code === "sandbox_died").toBe(true);
      await expectCleanEnd(sandbox.handle);
      expect(performance.now() - beginMs).toBeLessThan(8000);
    });

    test("a server that never answers fails the start in its time, and one that ends at once says why", async () => {
      const cases = [
        ["silent", "exec sleep 1000", "did not answer within"],
        ["broken", "echo no such file system >&2; exit 1", "no such file system"],
      ] as const;
      for (const [name, script, message] of cases) {
        const apptainer = withServer(`${driver}-${name}`, script);
        await using bundle = await setup(driver, { apptainer }, sif);
        const spec = bundle.spec({ limits: { ...LIMITS, startTimeoutMs: 1000 } });
        const error = await failure(bundle.driver.start(spec, NO_ABORT));
        expect(error).toMatchObject({ code: "sandbox_start_failed" });
        expect(error.message).toContain(message);
        expect(readdirSync(join(bundle.dataDir, "sandboxes"))).toEqual([".trash"]);
      }
    });
  });
} else {
  test.each(DRIVERS)("%s: a node that mounts no SIF says so", async (driver) => {
    await using bundle = await start(driver);
    const error = await failure(bundle.driver.start(bundle.spec(), NO_ABORT));
    expect(error).toMatchObject({ code: "sandbox_unavailable", mend: expect.any(String) });
    expect(error.message).toMatch(/\/dev\/fuse|squashfuse_ll/);
  });
}

if (process.getuid?.() === 0) {
  test("an unprivileged user's sandboxes pass the same tests", async () => {
    const { exitCode, output } = await asUnprivilegedUser("test/sandbox/sif.test.ts");
    expect({ exitCode, output: exitCode === 0 ? "" : output }).toEqual({ exitCode: 0, output: "" });
  }, 300_000);
}

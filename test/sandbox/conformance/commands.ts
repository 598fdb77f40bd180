import { expect, test } from "bun:test";
import { descendantsOf, processStartTime } from "../../../src/lib/proc.ts";
import { waitFor } from "../../support/wait-for.ts";
import type { Setup } from "../conformance.ts";
import { EXEC, failure } from "../setup.ts";

export function commandTests(setup: Setup): void {
  test("a command's streams, exit code, folder and variables are its own", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const script = 'echo "out $X"; echo err >&2; pwd; cat; exit 3';
    const options = { ...EXEC, cwd: "/usr", env: { X: "a b" }, stdin: "typed" };
    expect(await sandbox.exec(["sh", "-c", script], options)).toEqual({
      stdout: "out a b\n/usr\ntyped",
      stderr: "err\n",
      exitCode: 3,
      signal: null,
      timedOut: false,
    });
  });

  test("a command that is killed says by which signal", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const result = await sandbox.exec(["sh", "-c", "kill -TERM $$"], EXEC);
    expect(result).toMatchObject({ exitCode: null, signal: 15, timedOut: false });
  });

  test("a command that is late is killed with its group and its output kept", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const script = "trap '' TERM; echo begun; sleep 100 & sleep 100; echo never";
    const result = await sandbox.exec(["sh", "-c", script], { ...EXEC, timeoutMs: 300 });
    const expected = { stdout: "begun\n", stderr: "", exitCode: null, signal: 9, timedOut: true };
    expect(result).toEqual(expected);
    const { holderPid } = sandbox.handle;
    await waitFor(() => !descendantsOf(holderPid).some(processStartTime), "the group to be gone");
  });

  test("an aborted command ends the wait at once and the command with it", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const abort = new AbortController();
    const waiting = sandbox.exec(["sleep", "100"], { ...EXEC, signal: abort.signal });
    const { holderPid } = sandbox.handle;
    await waitFor(() => descendantsOf(holderPid).length > 0, "the command");
    abort.abort(new Error("cancelled"));
    expect((await failure(waiting)).message).toBe("cancelled");
    await waitFor(() => !descendantsOf(holderPid).some(processStartTime), "the command to end");
  });

  test("what can't be started is named", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const missing = await failure(sandbox.exec(["no-such-program"], EXEC));
    expect(missing).toMatchObject({ code: "image_invalid" });
    expect(missing.message).toContain("no-such-program");
    expect(missing.message).toContain("ENOENT");
    const noFolder = await failure(sandbox.exec(["true"], { ...EXEC, cwd: "/no/such" }));
    expect(noFolder.message).toContain("/no/such");
    const long = await failure(sandbox.exec(["echo", "x".repeat(300_000)], EXEC));
    expect(long).toMatchObject({ code: "instance_invalid" });
    expect(await failure(sandbox.exec(["echo", "a\0b"], EXEC))).toMatchObject({
      code: "instance_invalid",
    });
  });

  test("megabytes go through standard input and output whole", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const stdin = crypto.getRandomValues(new Uint8Array(60_000)).toHex().repeat(30);
    const options = { ...EXEC, stdin, maxOutputBytes: 10_000_000 };
    const result = await sandbox.exec(["cat"], options);
    expect(result.stdout === stdin).toBe(true);
  });

  test("a command that does not read its input delays nobody", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const deaf = sandbox.exec(["sleep", "1"], { ...EXEC, stdin: "x".repeat(5_000_000) });
    const beside = await sandbox.exec(["echo", "answer"], EXEC);
    expect(beside.stdout).toBe("answer\n");
    expect(await deaf).toMatchObject({ exitCode: 0 });
  });

  test("P8: of a flood both ends are kept, the cut is stated and memory stays flat", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const before = process.memoryUsage.rss();
    const script = "echo first; head -c 300000000 /dev/zero | tr '\\0' x; echo; echo last";
    const { stdout, exitCode } = await sandbox.exec(["sh", "-c", script], EXEC);
    expect(exitCode).toBe(0);
    expect(stdout).toStartWith("first\nxxx");
    expect(stdout).toEndWith("xxx\nlast\n");
    expect(stdout).toContain("\n[... 299900012 bytes cut ...]\n");
    expect(process.memoryUsage.rss() - before).toBeLessThan(100_000_000);
  });

  test("a flood does not keep another command waiting", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const flood = sandbox.exec(["yes"], { ...EXEC, timeoutMs: 1500 });
    const times: number[] = [];
    for (let i = 0; i < 20; i++) {
      const startMs = performance.now();
      await sandbox.exec(["true"], EXEC);
      times.push(performance.now() - startMs);
    }
    expect(await flood).toMatchObject({ timedOut: true });
    expect(times.sort((a, b) => a - b)[10] as number).toBeLessThan(500);
  });

  test("a child that keeps the output open does not delay the end of its parent", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const quiet = await sandbox.exec(["sh", "-c", "sleep 100 & echo done"], EXEC);
    expect(quiet).toMatchObject({ stdout: "done\n", exitCode: 0, timedOut: false });
    const loud = await sandbox.exec(["sh", "-c", "yes & exit 4"], EXEC);
    expect(loud).toMatchObject({ exitCode: 4, timedOut: false });
  });

  test("many commands run at once and orphans do not stay as zombies", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const runs = Array.from({ length: 50 }, (_, i) =>
      sandbox.exec(["sh", "-c", `(sleep 0.01 &) ; echo ${i}`], EXEC),
    );
    const outputs = (await Promise.all(runs)).map((run) => Number(run.stdout));
    expect(outputs).toEqual(runs.map((_, i) => i));
    const { holderPid } = sandbox.handle;
    await waitFor(() => descendantsOf(holderPid).length === 0, "the orphans to be reaped");
  });

  test("more commands at once than there are streams for fail as such", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const runs = Array.from({ length: 70 }, () =>
      sandbox.exec(["sleep", "1"], EXEC).then(
        () => "ran",
        (error) => error.code,
      ),
    );
    const outcomes = await Promise.all(runs);
    expect(outcomes.filter((outcome) => outcome === "ran")).toHaveLength(64);
    expect(new Set(outcomes)).toEqual(new Set(["ran", "sandbox_protocol"]));
  });

  test("a command sees its three streams and no other descriptor, and no variable of ours", async () => {
    process.env.ROLLOUTD_CANARY = "canary";
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const { stdout } = await sandbox.exec(["bash", "-c", "ls -m /proc/$$/fd; env"], EXEC);
    const [fds, ...env] = stdout.trim().split("\n");
    expect(fds).toBe("0, 1, 2");
    const names = env.map((line) => line.split("=")[0]).sort();
    expect(names).toEqual(
      [
        "GIT_PAGER",
        "GIT_TERMINAL_PROMPT",
        "HOME",
        "LANG",
        "MANPAGER",
        "MPLBACKEND",
        "PAGER",
      ].concat(["PATH", "PWD", "SHELL", "SHLVL", "TERM", "_"]),
    );
  });
}

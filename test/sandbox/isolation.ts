import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdir, mkdtemp, readFile, symlink, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { isRunning } from "../../src/lib/proc.ts";
import { removeTree } from "../../src/lib/remove-tree.ts";
import type { Setup } from "./conformance.ts";
import { EXEC, failure } from "./setup.ts";

const RUN = { timeoutMs: 20_000, maxOutputBytes: 100_000 };

/** What holds of a sandbox that isolates, so not of the host driver. */
export function isolationTests(setup: Setup): void {
  setDefaultTimeout(60_000);

  test("nothing of the host's home, temporary files or state is visible", async () => {
    const canary = await mkdtemp(join(tmpdir(), "canary-"));
    await writeFile(join(canary, "secret"), "secret");
    try {
      await using bundle = await setup();
      const sandbox = await bundle.open();
      const neighbour = await bundle.start();
      const hidden = [canary, bundle.dataDir, neighbour.dir, homedir(), import.meta.dir];
      for (const path of hidden) {
        // An image has a home of that name itself; then it is empty of ours.
        const listing = await sandbox.exec(["ls", "-A", path], EXEC);
        expect([path, listing.stdout.trim()]).toEqual([
          path,
          path === "/root" ? expect.any(String) : "",
        ]);
      }
      expect(await failure(sandbox.readFile(join(canary, "secret"), 10))).toMatchObject({
        code: "ENOENT",
      });
      const home = await sandbox.exec(["ls", "-A", homedir()], EXEC);
      expect(home.stdout).not.toContain(".cache");
    } finally {
      await removeTree(canary);
    }
  });

  test("variables and arguments of the host are not visible in any process", async () => {
    process.env.ROLLOUTD_CANARY = "canary-of-the-environment";
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const script = "cat /proc/[0-9]*/environ /proc/self/environ 2>/dev/null | tr '\\0' '\\n'; env";
    const { stdout } = await sandbox.exec(["sh", "-c", script], EXEC);
    expect(stdout).not.toContain("canary");
    expect(stdout).not.toMatch(/APPTAINER|SINGULARITY/);
    expect(stdout).toContain("HOME=/tmp/home");
  });

  test("only its own processes are visible, below our supervisor", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const script = "cd /proc; echo [0-9]*; cat 1/comm; readlink 1/exe; head -c1 1/mem; echo $?";
    const { stdout, stderr } = await sandbox.exec(["sh", "-c", script], EXEC);
    const [pids, name, status] = stdout.trim().split("\n");
    expect(pids?.split(" ").length).toBeLessThan(4);
    expect(pids).toStartWith("1 ");
    expect({ name, status }).toEqual({ name: "supervisor", status: "1" });
    expect(stderr).toContain("Permission denied");
  });

  test("there is no network but its own loopback", async () => {
    using server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const dial = `exec 3<>/dev/tcp/127.0.0.1/${server.port}`;
    const dialed = await sandbox.exec(["bash", "-c", dial], EXEC);
    expect(dialed.exitCode).not.toBe(0);
    expect(dialed.stderr).toContain("refused");
    const cards = await sandbox.exec(["sh", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1"], EXEC);
    expect(cards.stdout.trim()).toBe("lo");
  });

  test("names are neutral, privileges none, and the service's files read-only", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const script = `hostname 2>/dev/null || cat /proc/sys/kernel/hostname; ls /sys | wc -l
grep -E '^(CapEff|NoNewPrivs)' /proc/self/status | tr '\\t\\n' '  '; echo
touch /run/rollout/x; rm -f /run/rollout/supervisor; true 3>>/proc/sys/kernel/core_pattern; ls /dev/kvm /dev/kmsg`;
    const { stdout, stderr } = await sandbox.exec(["bash", "-c", script], EXEC);
    expect(stdout).toBe("sbx\n0\nCapEff: 0000000000000000 NoNewPrivs: 1 \n");
    expect(stderr.match(/Read-only file system/g)?.length).toBeGreaterThanOrEqual(2);
    expect(stderr.match(/No such file/g)?.length).toBeGreaterThanOrEqual(2);
  });

  test("what is written stays in the sandbox: not in the image, not in the next one", async () => {
    await using bundle = await setup();
    for (const writable of ["tmpfs", "overlay"] as const) {
      const first = await bundle.open({ writable });
      const paths = "/tmp/mark-of-test /run/io/mark-of-test /dev/shm/mark-of-test";
      const wrote = await first.exec(["sh", "-c", `touch ${paths} && ls ${paths}`], EXEC);
      expect(wrote).toMatchObject({ exitCode: 0 });
      const second = await bundle.open({ writable });
      const looked = await second.exec(["sh", "-c", `ls ${paths} /mark* 2>/dev/null`], EXEC);
      expect(looked.stdout).toBe("");
    }
  });

  test("root, /tmp and /dev/shm share one bound", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const folders = ["/tmp", "/var/tmp", "/dev/shm"];
    // Another user may not write into an image that is root's.
    if (process.getuid?.() === 0) folders.push("/root");
    for (const folder of folders) {
      const fill = `head -c 100000000 /dev/zero >${folder}/large; rm ${folder}/large; exit 0`;
      const { stderr } = await sandbox.exec(["sh", "-c", fill], EXEC);
      expect([folder, stderr]).toEqual([folder, expect.stringContaining("No space left")]);
    }
  });

  test("so do the names in them: empty files are not without a bound", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const program = `import errno
try:
    for i in range(100_000): open(f"/tmp/{i}", "w").close()
except OSError as error: print(errno.errorcode[error.errno])`;
    const { stdout } = await sandbox.exec(["python3", "-c", program], EXEC);
    expect(stdout).toBe("ENOSPC\n");
  });

  test("links that lead outward end inside", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const outside = join(bundle.dataDir, "outside");
    await writeFile(outside, "host");
    await sandbox.exec(["ln", "-s", outside, "/tmp/link"], EXEC);
    expect(await failure(sandbox.readFile("/tmp/link", 10))).toMatchObject({ code: "ENOENT" });
    await sandbox.writeFile("/tmp/link", "sandbox").catch(() => {});
    expect(await readFile(outside, "utf8")).toBe("host");
    const dots = `${"../".repeat(20)}${outside.slice(1)}`;
    expect(await failure(sandbox.readFile(dots, 10))).toMatchObject({ code: "ENOENT" });
  });

  test("a link in place of the Python socket does not lead to one of the host's", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    let connections = 0;
    const path = join(bundle.dataDir, "host.sock");
    using _server = Bun.listen({
      unix: path,
      socket: { open: () => void connections++, data() {} },
    });
    const python = await sandbox.python({ startTimeoutMs: 20_000 });
    await python.run(
      `import os; os.unlink("/run/io/py.sock"); os.symlink(${JSON.stringify(path)}, "/run/io/py.sock")`,
      RUN,
    );
    await sandbox.detach();
    const { attachSandbox } = await import("../../src/sandbox/attach.ts");
    const again = await attachSandbox(sandbox.handle);
    const wait = again.python({ startTimeoutMs: 300 });
    expect(await failure(wait)).toMatchObject({ code: "sandbox_protocol" });
    expect(connections).toBe(0);
  });

  test("kill -9 -1 and kill -9 1 cost commands, but not the sandbox", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const shell = await sandbox.shell();
    const python = await sandbox.python({ startTimeoutMs: 20_000 });
    await python.run("x = 1", RUN);
    await shell.run("kill -9 1; kill -STOP 1; kill -9 -1", RUN);
    expect((await shell.run("echo alive", RUN)).output).toEndWith("alive\n");
    const other = await sandbox.exec(["python3", "-c", "import os; os.kill(-1, 9)"], EXEC);
    expect(other.exitCode).toBe(0);
    const after = await shell.run("echo alive", RUN);
    expect(after).toMatchObject({ shellReplaced: true });
    expect((await shell.run("echo alive", RUN)).output).toBe("alive\n");
    expect(await python.run("1", RUN)).toMatchObject({ output: "1\n", restarted: true });
    const { holderPid, holderStartTime } = sandbox.handle;
    expect(isRunning(holderPid, holderStartTime)).toBe(true);
  });

  test("what the model's own commands have broken is not the image's fault, in the next thread either", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const missing = sandbox.exec(["/no/such/program"], EXEC);
    expect(await failure(missing)).toMatchObject({ code: "image_invalid" });
    const shell = await sandbox.shell();
    await shell.run("chmod 000 /tmp/home", RUN);
    expect(await failure(shell.run("exit", RUN))).toMatchObject({ code: "sandbox_broken" });
    const python = sandbox.python({ startTimeoutMs: 20_000 });
    expect(await failure(python)).toMatchObject({ code: "sandbox_broken" });
    await sandbox.detach();
    const { attachSandbox } = await import("../../src/sandbox/attach.ts");
    const again = await attachSandbox(JSON.parse(JSON.stringify(sandbox.handle)));
    expect(await failure(again.exec(["true"], EXEC))).toMatchObject({ code: "sandbox_broken" });
    await again.detach();
  });

  test("IPython, NumPy and SymPy work in a cell", async () => {
    await using bundle = await setup();
    const python = await (await bundle.open()).python({ startTimeoutMs: 20_000 });
    const code = "import numpy, sympy\nx = sympy.Symbol('x')\nsympy.integrate(x**2, x)";
    expect((await python.run(code, RUN)).output).toBe("x**3/3\n");
    expect((await python.run("numpy.arange(3).sum()", RUN)).output).toContain("3");
    expect((await python.run("!echo from a shell", RUN)).output).toBe("from a shell\n");
    expect((await python.run("%pwd", RUN)).output).toBe("'/tmp/home'\n");
  });

  test("an image without Python or bash says so", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open({ writable: "overlay" });
    const image = join(bundle.dataDir, "image");
    await mkdir(join(image, "usr"), { recursive: true });
    await mkdir(join(image, "bin"));
    for (const folder of ["dev", "proc", "sys", "tmp", "run", "etc", "var"]) {
      await mkdir(join(image, folder));
    }
    await symlink("usr/lib", join(image, "lib"));
    const bare = await bundle.open({ image });
    const noBash = await failure(bare.shell());
    expect(noBash).toMatchObject({ code: "image_invalid" });
    expect(noBash.message).toContain("bash");
    const noPython = await failure(bare.python({ startTimeoutMs: 20_000 }));
    expect(noPython).toMatchObject({ code: "image_invalid" });
    expect(noPython.message).toContain("python3");
    await sandbox.detach();
  });
}

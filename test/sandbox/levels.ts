import { dlopen } from "bun:ffi";
import { expect, test } from "bun:test";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { DriverOptions } from "../../src/sandbox/driver.ts";
import type { DriverName } from "../../src/sandbox/sandbox.ts";
import { type Bundle, EXEC, failure, NO_ABORT, required, setup } from "./setup.ts";

const libc = dlopen("libc.so.6", {
  syscall: { args: ["i64", "i64", "i64", "i64"], returns: "i32" },
}).symbols;
const LANDLOCK_CREATE_RULESET = 444n;
const LANDLOCK_WITH_SCOPES = 6;

/** A driver whose program is `script`, which finds the real one in `$PROGRAM`. */
async function scripted(
  bundle: Bundle,
  driver: DriverName,
  script: string,
  options: Partial<DriverOptions> = {},
): Promise<Bundle> {
  const setting = driver === "apptainer" ? "apptainer" : "bwrap";
  const program = required(`ROLLOUTD_${setting.toUpperCase()}`);
  const fake = join(bundle.dataDir, "program");
  await writeFile(fake, `#!/bin/sh\nPROGRAM=${program}\n${script}\n`);
  await chmod(fake, 0o755);
  return setup(driver, { [setting]: fake, ...options });
}

/** The limit holds for the namespaces below the one that it is set in. */
const WITHOUT_NETWORK = `exec unshare --user --map-root-user sh -c \
'echo 0 >/proc/sys/user/max_net_namespaces; exec "$0" "$@"' $PROGRAM "$@"`;

/** What becomes of the level on nodes that give less. */
export function levelTests(driver: DriverName): void {
  test("P19: a node that gives everything is at level A, and the handle says so", async () => {
    await using bundle = await setup(driver, { minIsolation: "A" });
    expect((await bundle.start()).isolation).toBe("A");
  });

  test("a node without network namespaces is at level B, and IP sockets are refused there", async () => {
    using server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    await using bundle = await setup(driver);
    await using without = await scripted(bundle, driver, WITHOUT_NETWORK);
    const sandbox = await without.open();
    expect(sandbox.handle.isolation).toBe("B");
    const program = `import socket
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        try: print(socket.socket(family, kind))
        except PermissionError: pass
a, b = socket.socketpair()
a.send(b"x"); print(b.recv(1))`;
    expect(await sandbox.exec(["python3", "-c", program], EXEC)).toMatchObject({
      stdout: "b'x'\n",
      exitCode: 0,
    });
    const dial = `exec 3<>/dev/tcp/127.0.0.1/${server.port}`;
    const dialed = await sandbox.exec(["bash", "-c", dial], EXEC);
    expect(dialed.exitCode).not.toBe(0);
    expect(dialed.stderr).toContain("not permitted");
    // The second start asks for no network namespace in the first place.
    expect((await without.start()).isolation).toBe("B");
  });

  test("at level B the host's abstract sockets are out of reach where the kernel has Landlock for it", async () => {
    let connections = 0;
    const name = `rolloutd-${crypto.randomUUID()}`;
    const socket = { open: () => void connections++, data() {} };
    const host = Bun.listen({ unix: `\0${name}`, socket });
    await using bundle = await setup(driver);
    await using without = await scripted(bundle, driver, WITHOUT_NETWORK);
    const sandbox = await without.open();
    const program = `import socket
try: socket.socket(socket.AF_UNIX).connect("\\0${name}"); print("connected")
except PermissionError: print("refused")
a, b = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
a.bind("\\0own"); a.listen(); b.connect("\\0own"); print("own")`;
    const { stdout } = await sandbox.exec(["python3", "-c", program], EXEC);
    host.stop(true);
    const version = libc.syscall(LANDLOCK_CREATE_RULESET, 0n, 0n, 1n);
    const scoped = version >= LANDLOCK_WITH_SCOPES;
    expect(stdout).toBe(scoped ? "refused\nown\n" : "connected\nown\n");
    expect(connections).toBe(scoped ? 0 : 1);
  });

  test("a node below min_isolation is refused with the missing part and what to do", async () => {
    await using bundle = await setup(driver);
    await using without = await scripted(bundle, driver, WITHOUT_NETWORK, { minIsolation: "A" });
    for (let attempt = 0; attempt < 2; attempt++) {
      const error = await failure(without.driver.start(without.spec(), NO_ABORT));
      expect(error).toMatchObject({ code: "sandbox_unavailable" });
      expect(error).toMatchObject({ mend: expect.stringContaining("user.max_net_namespaces") });
      expect(error.message).toContain("no network namespace");
    }
  });

  test("a start that fails for another reason is not taken for a lower level", async () => {
    await using bundle = await setup(driver);
    // Fails where the image is the rollout's, and works with the empty one of the probe.
    const script = `case "$*" in */probe.*) ;; *exec*|*unshare*) [ -e $0.fails ] && exit 9;; esac
exec $PROGRAM "$@"`;
    await using flaky = await scripted(bundle, driver, script);
    const flag = join(bundle.dataDir, "program.fails");
    await writeFile(flag, "");
    const error = await failure(flaky.driver.start(flaky.spec(), NO_ABORT));
    expect(error).toMatchObject({ code: "sandbox_start_failed" });
    await Bun.file(flag).delete();
    expect((await flaky.start()).isolation).toBe("A");
  });

  test("a node that lets no filter be installed is refused, as it will be again", async () => {
    await using bundle = await setup(driver);
    // A filter of ours would be refused like this below one that denies seccomp.
    const script =
      'case "$*" in *"supervisor "*) echo "seccomp filters are not available" >&2; exit 4;; esac; exec $PROGRAM "$@"';
    await using without = await scripted(bundle, driver, script);
    const error = await failure(without.driver.start(without.spec(), NO_ABORT));
    expect(error).toMatchObject({ code: "sandbox_unavailable", mend: expect.any(String) });
  });

  test("a program that ignores what it is asked for does not get its sandbox used", async () => {
    await using bundle = await setup(driver);
    const script = `for argument; do shift
case $argument in
  --net|--network|none) ;;
  --unshare-all) set -- "$@" --unshare-pid --unshare-ipc --unshare-uts ;;
  *) set -- "$@" "$argument" ;;
esac; done
exec $PROGRAM "$@"`;
    await using careless = await scripted(bundle, driver, script);
    const error = await failure(careless.driver.start(careless.spec(), NO_ABORT));
    expect(error).toMatchObject({ code: "sandbox_unavailable" });
    expect(error.message).toContain("net namespace");
  });
}

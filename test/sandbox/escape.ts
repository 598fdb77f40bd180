import { dlopen } from "bun:ffi";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, openSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { removeTree } from "../../src/lib/remove-tree.ts";
import type { DriverName, ExecResult, Sandbox } from "../../src/sandbox/sandbox.ts";
import { type Bundle, EXEC, failure, LIMITS, required, setup } from "./setup.ts";

const IS_ROOT = process.getuid?.() === 0;
const SUPERVISOR = join(import.meta.dir, "../../src/sandbox/supervisor.c");
const RUN = { timeoutMs: 20_000, maxOutputBytes: 100_000 };
const HIDDEN = "canary-of-the-host";

/** A skipped test would count as a failed one in CI; these have no meaning for the other user. */
const untested = (..._: unknown[]) => {};

/** System calls by number, and what came of them by name. */
const PYTHON = `import ctypes, errno, fcntl, mmap, os, resource, socket, sys, termios
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *arguments):
    ctypes.set_errno(0)
    padded = list(arguments) + [0] * (6 - len(arguments))
    result = libc.syscall(ctypes.c_long(number), *(a if isinstance(a, bytes) else ctypes.c_long(a) for a in padded))
    if result == 0 and number in (56, 435, 57) : os._exit(0)
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
def attempt(work, *arguments):
    try:
        work(*arguments)
        return "done"
    except socket.gaierror:
        return "no name"
    except OSError as error:
        return errno.errorcode[error.errno]
    except ValueError:
        return "EPERM"
`;

const libc = dlopen("libc.so.6", {
  dup: { args: ["int"], returns: "int" },
  close: { args: ["int"], returns: "int" },
  shmget: { args: ["int", "u64", "int"], returns: "int" },
  shmctl: { args: ["int", "int", "ptr"], returns: "int" },
}).symbols;

/**
 * What code that means harm tries first. Every check runs as a command of the supervisor's, which is how all
 * code gets into a sandbox; at level A, on a node that gives everything.
 */
export function escapeTests(driver: DriverName): void {
  let bundle: Bundle;
  let sandbox: Sandbox;
  let neighbour: Sandbox;
  let canaries: string;
  let leakedFd: number;

  beforeAll(async () => {
    process.env.ROLLOUTD_CANARY = HIDDEN;
    canaries = await mkdtemp(join(tmpdir(), "canary-"));
    await writeFile(join(canaries, HIDDEN), HIDDEN);
    // Open in every child that we start, unless what starts it closes it.
    leakedFd = libc.dup(openSync(join(canaries, HIDDEN), "r"));
    bundle = await setup(driver);
    await writeFile(join(bundle.dataDir, HIDDEN), HIDDEN);
    neighbour = await bundle.open();
    for (const folder of ["/tmp", "/dev/shm", "/tmp/home", "/run/io"]) {
      await neighbour.writeFile(`${folder}/${HIDDEN}`, HIDDEN);
    }
    sandbox = await bundle.open();
  }, 60_000);

  afterAll(async () => {
    delete process.env.ROLLOUTD_CANARY;
    libc.close(leakedFd);
    await bundle[Symbol.asyncDispose]();
    await removeTree(canaries);
  });

  const sh = (script: string): Promise<ExecResult> => sandbox.exec(["bash", "-c", script], EXEC);
  const python = (program: string): Promise<ExecResult> =>
    sandbox.exec(["python3", "-c", PYTHON + program], EXEC);
  /** The lines that a program prints, which must end well. */
  const lines = async (program: string): Promise<string[]> => {
    const { stdout, stderr, exitCode } = await python(program);
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    return stdout.trim().split("\n");
  };

  // ---- files ----

  test("P14: no file of the host, of the service or of a neighbour is anywhere in the tree", async () => {
    const { stdout } = await sh(`find / -name '${HIDDEN}' 2>/dev/null; echo looked`);
    expect(stdout).toBe("looked\n");
  });

  test("the paths of the host's home, temporary files and state lead nowhere", async () => {
    for (const path of [canaries, bundle.dataDir, neighbour.handle.dir, sandbox.handle.dir]) {
      const { exitCode, stderr } = await sh(`ls '${path}'`);
      expect({ exitCode, stderr }).toEqual({
        exitCode: 2,
        stderr: expect.stringMatching("No such"),
      });
    }
    if (homedir() !== "/root") expect((await sh(`ls -A '${homedir()}'`)).stdout).toBe("");
  });

  test("a command can't be started in a folder of the host's", async () => {
    const started = sandbox.exec(["true"], { ...EXEC, cwd: bundle.dataDir });
    expect(await failure(started)).toMatchObject({ code: "image_invalid" });
  });

  test("the folder that a command starts in, and all above it, are the image's", async () => {
    const script =
      "pwd -P; readlink /proc/self/cwd; cd ../../../../..; pwd -P; ls | sort | head -n 3";
    const { stdout } = await sandbox.exec(["sh", "-c", script], EXEC);
    const image = readdirSync(required("ROLLOUTD_IMAGE")).sort().slice(0, 3);
    expect(stdout.split("\n").slice(0, 3)).toEqual(["/tmp/home", "/tmp/home", "/"]);
    expect(stdout.trim().split("\n").slice(3)).toEqual(image);
  });

  test("what is written to the image's files does not reach the image", async () => {
    const path = join(required("ROLLOUTD_IMAGE"), "etc/passwd");
    const before = readFileSync(path, "utf8");
    const { stdout } = await sh(
      "echo mark-of-test >>/etc/passwd; rm -f /usr/bin/git; ls /usr/bin/git | wc -l",
    );
    expect(readFileSync(path, "utf8")).toBe(before);
    expect(existsSync(join(required("ROLLOUTD_IMAGE"), "usr/bin/git"))).toBe(true);
    if (IS_ROOT) expect(stdout).toBe("0\n");
  });

  test("the service's own files inside can be neither written, removed nor covered", async () => {
    const before = await sh("sha256sum /run/rollout/*");
    const tries = `cd /run/rollout; echo x >supervisor; rm -f supervisor; touch new; mv supervisor old
chmod 777 .; ln -sf /bin/true shell-rc.bash; mv /run/rollout /run/gone; ls | sort`;
    const { stderr } = await sh(tries);
    expect(stderr.match(/Read-only file system/g)?.length).toBeGreaterThanOrEqual(4);
    expect((await sh("sha256sum /run/rollout/*")).stdout).toBe(before.stdout);
  });

  test("no device of the node is there, and none can be made", async () => {
    const { stdout } = await sh(
      "cd /dev; find . ! -type d ! -path './pts/*' | sort | tr '\\n' ' '",
    );
    const usual = "core fd full null ptmx random stderr stdin stdout tty urandom zero".split(" ");
    const found = stdout
      .trim()
      .split(" ")
      .map((path) => path.slice(2));
    expect(found.filter((name) => !usual.includes(name))).toEqual([]);
    const made = await lines(`import stat
for name, mode, device in (("mem", stat.S_IFCHR, (1, 1)), ("disk", stat.S_IFBLK, (254, 0)), ("kvm", stat.S_IFCHR, (10, 232))):
    print(attempt(os.mknod, "/tmp/" + name, mode | 0o666, os.makedev(*device)))`);
    expect(made).toEqual(["EPERM", "EPERM", "EPERM"]);
  });

  test("the modes and owners of the host's device files can't be changed", async () => {
    // To what they are, so that a hole found does no harm.
    const { stdout } = await sh(
      "for f in null zero urandom tty; do chmod 666 /dev/$f && chown 0:0 /dev/$f && echo $f; done 2>/dev/null; true",
    );
    expect(stdout).toBe("");
  });

  test("/sys is empty, and /proc's kernel files can't be written", async () => {
    expect((await sh("ls -A /sys")).stdout).toBe("");
    const writable = await lines(`for folder, _, files in os.walk("/proc"):
    if folder.split("/")[2:3] and folder.split("/")[2].strip("0123456789") in ("", "self", "thread-self"): continue
    for name in files:
        if attempt(os.open, folder + "/" + name, os.O_WRONLY) == "done": print(folder + "/" + name)`);
    // Those of the sandbox's own namespaces, and one that is every user's.
    const own =
      /^\/proc\/(pressure|sys\/(net|user|fs\/mqueue|kernel\/(sem|shm\w*|msg\w*|auto_msgmni|hostname|domainname|ns_last_pid|pid_max)))(\/|$)/;
    expect(writable.filter((path) => path !== "" && !own.test(path))).toEqual([]);
    if (IS_ROOT) expect(writable).toEqual([""]);
  });

  test("a set-user-ID program, or one with capabilities, gains nothing", async () => {
    const { stdout } = await sh(`cp /bin/grep /tmp/gain; chmod 6755 /tmp/gain
/tmp/gain -h -E '^Cap(Prm|Eff)' /proc/self/status | sort -u | cut -f2 | uniq`);
    expect(stdout).toBe("0000000000000000\n");
    const set = await lines(`capability = bytes.fromhex("0100000200200000000000000000000000000000")
print(attempt(os.setxattr, "/tmp/gain", "security.capability", capability))`);
    expect(set).toEqual(["EPERM"]);
  });

  test("the writable file systems in RAM are all of the configured size", async () => {
    const [bound, ...unbounded] = await lines(`sizes = set()
for line in open("/proc/self/mountinfo"):
    fields = line.split()
    kind, path = fields[fields.index("-") + 1], fields[4]
    if kind not in ("tmpfs", "overlay") or not os.path.isdir(path): continue
    try: os.close(os.open(path, os.O_TMPFILE | os.O_RDWR))
    except OSError: continue
    status = os.statvfs(path)
    size = status.f_blocks * status.f_frsize
    sizes.add(size)
    if size != ${LIMITS.tmpfsBytes}: sizes.add(path)
print(*sizes, sep="\\n")`);
    expect({ bound, unbounded }).toEqual({ bound: `${LIMITS.tmpfsBytes}`, unbounded: [] });
  });

  test("the mounts name nothing of the host but the sandbox's own two folders", async () => {
    const mounts = (await sh("cat /proc/self/mountinfo")).stdout.trim().split("\n");
    const named = mounts.filter((line) => line.includes(bundle.dataDir.slice(1)));
    expect(named.map((line) => line.split(" ")[4]).sort()).toEqual(["/run/io", "/run/rollout"]);
    for (const path of [
      required("ROLLOUTD_IMAGE"),
      canaries,
      import.meta.dir,
      neighbour.handle.id,
    ]) {
      expect(mounts.filter((line) => line.includes(path))).toEqual([]);
    }
  });

  // ---- descriptors, environment, arguments, names ----

  test("commands, shells and Python have three descriptors, whatever the service had open", async () => {
    const list =
      "import os; print(sorted(os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')))";
    const files = await sandbox.exec(["python3", "-c", list], EXEC);
    const shell = await (await sandbox.shell()).run(`python3 -c "${list}"`, RUN);
    const cell = await (await sandbox.python({ startTimeoutMs: 20_000 })).run(list, RUN);
    for (const text of [files.stdout, shell.output, cell.output]) {
      expect(text).not.toContain(HIDDEN);
      expect(text).not.toContain(bundle.dataDir);
    }
    expect(files.stdout.match(/pipe:/g)?.length).toBe(3);
  });

  (IS_ROOT ? test : untested)(
    "PID 1 holds nothing but its socket, /dev/null and its signals",
    () => {
      const folder = `/proc/${neighbour.handle.holderPid}/fd`;
      const held = readdirSync(folder).map((fd) =>
        readlinkSync(join(folder, fd)).replace(/\d+/, "N"),
      );
      expect([...new Set(held)].sort()).toEqual([
        "/dev/null",
        "anon_inode:[signalfd]",
        "anon_inode:seccomp notify",
        "socket:[N]",
      ]);
    },
  );

  test("nothing of the service's environment is in any process", async () => {
    const script =
      "cat /proc/[0-9]*/environ /proc/*/task/*/environ 2>/dev/null | tr '\\0' '\\n'; env; export -p";
    const { stdout } = await sh(script);
    expect(stdout).toContain("HOME=/tmp/home");
    expect(stdout).not.toContain(HIDDEN);
    expect(stdout).not.toMatch(/APPTAINER|SINGULARITY|ROLLOUTD|bwrap/i);
  });

  test("no argument names a path of the host", async () => {
    const { stdout } = await sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
    expect(stdout).toStartWith("/run/rollout/supervisor ");
    expect(stdout).not.toContain(bundle.dataDir);
    expect(stdout).not.toContain(required("ROLLOUTD_IMAGE"));
  });

  test("the host's name is not known", async () => {
    const { stdout } = await sh(
      "cat /proc/sys/kernel/hostname; uname -n; cat /etc/hostname 2>/dev/null",
    );
    expect([...new Set(stdout.trim().split("\n"))]).toEqual(["sbx"]);
  });

  // ---- processes ----

  test("the sandbox's own processes are all that there are", async () => {
    const { stdout } = await sh("cd /proc; for p in [0-9]*; do cat $p/comm; done | sort -u");
    const known = ["bash", "cat", "python3", "sort", "supervisor"];
    expect(
      stdout
        .trim()
        .split("\n")
        .filter((name) => !known.includes(name)),
    ).toEqual([]);
  });

  test("of PID 1 neither memory, descriptors, root nor environment can be opened", async () => {
    const found = await lines(`for name in ("mem", "environ", "maps", "auxv", "syscall", "stack"):
    print(attempt(lambda: open("/proc/1/" + name, "rb").read(1)))
print(attempt(os.readlink, "/proc/1/root"), attempt(os.readlink, "/proc/1/cwd"), attempt(os.readlink, "/proc/1/fd/3"))
print(attempt(os.readlink, "/proc/1/exe"), attempt(open, "/proc/1/mem", "r+b"))`);
    expect(found.join(" ")).toMatch(/^(E(ACCES|PERM|ROFS) ?)+$/);
  });

  test("PID 1 can't be killed, stopped, limited or reniced", async () => {
    const found = await lines(`import signal
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV, signal.SIGQUIT): os.kill(1, number)
print(attempt(resource.prlimit, 1, resource.RLIMIT_NOFILE, (3, 3)))
resource.prlimit(0, resource.RLIMIT_NOFILE)
print(attempt(open, "/proc/1/oom_score_adj", "w"))`);
    expect(found.join(" ")).toMatch(/^E(ACCES|PERM) E(ACCES|PERM|ROFS)$/);
    expect((await sh("echo alive; cat /proc/1/oom_score_adj")).stdout).toBe("alive\n1000\n");
  });

  test("no process can be traced, its memory read, or its descriptors taken", async () => {
    const found = await lines(`child = os.fork()
if child == 0:
    import time; time.sleep(20); os._exit(0)
for pid in (1, child):
    pidfd = os.pidfd_open(pid)
    print(call(101, 16, pid), call(101, 0x4206, pid), call(310, pid), call(311, pid), call(438, pidfd, 0), call(440, pidfd))
os.kill(child, 9)`);
    expect(found).toEqual(Array(2).fill(Array(6).fill("EPERM").join(" ")));
  });

  test("kill -9 -1 costs the commands and not the sandbox", async () => {
    await sandbox.exec(["python3", "-c", "import os; os.kill(-1, 9)"], EXEC);
    expect(await sh("echo alive")).toMatchObject({ stdout: "alive\n", exitCode: 0 });
  });

  test("limits can't be raised, and the kernel's choice of victim can't be turned", async () => {
    const raised = await lines(`for name in ("NOFILE", "NPROC", "FSIZE", "CORE"):
    limit = getattr(resource, "RLIMIT_" + name)
    soft, hard = resource.getrlimit(limit)
    print(name, attempt(resource.setrlimit, limit, (hard + 1, hard + 1)))
def protect():
    with open("/proc/self/oom_score_adj", "w") as file: file.write("-1")
print(attempt(protect) != "done", attempt(os.nice, -1))`);
    expect(raised).toEqual([
      "NOFILE EPERM",
      "NPROC EPERM",
      "FSIZE EPERM",
      "CORE EPERM",
      "True EPERM",
    ]);
  });

  test("hundreds of busy processes yield to the service, and can't change that", async () => {
    const ask = "import os; print(os.nice(0))";
    const shell = await (await sandbox.shell()).run(`python3 -c "${ask}"`, RUN);
    const session = await sandbox.python({ startTimeoutMs: 20_000 });
    // A test before this one kills all commands; the first cell finds that out.
    await session.run("1", RUN);
    const cell = await session.run(ask, RUN);
    const command = await sandbox.exec(["python3", "-c", ask], EXEC);
    expect([command.stdout, shell.output, cell.output]).toEqual(["10\n", "10\n", "10\n"]);
  });

  // The kernel exempts the host's root from this limit.
  (IS_ROOT ? untested : test)(
    "a fork bomb stops at the limit, and a neighbour does not feel it",
    async () => {
      const bomb = await bundle.open({ limits: { ...LIMITS, processes: 60 } });
      const program = `${PYTHON}children = []
try:
    while len(children) < 500:
        child = os.fork()
        if child == 0:
            import time; time.sleep(20); os._exit(0)
        children.append(child)
except OSError as error: print(errno.errorcode[error.errno])
print(len(children) < 60)
for child in children: os.kill(child, 9)`;
      const running = bomb.exec(["python3", "-c", program], EXEC);
      expect(await sh("for i in 1 2 3 4 5 6 7 8 9; do (true); done; echo fine")).toMatchObject({
        stdout: "fine\n",
      });
      expect((await running).stdout).toBe("EAGAIN\nTrue\n");
    },
  );

  // ---- privileges and the filter ----

  test("commands, shells and Python have no capabilities, no way to new ones, and the filter", async () => {
    const query = "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status";
    const shell = await (await sandbox.shell()).run(query, RUN);
    const session = await sandbox.python({ startTimeoutMs: 20_000 });
    // A test before this one kills all commands; the first cell finds that out.
    await session.run("1", RUN);
    const cell = await session.run(`!${query}`, RUN);
    const names = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
    const expected = `${names.map((name) => `${name}:\t0000000000000000\n`).join("")}NoNewPrivs:\t1\nSeccomp:\t2\n`;
    for (const text of [(await sh(query)).stdout, shell.output, cell.output]) {
      expect(text.replaceAll(/[ \t]+(?=[\d])/g, "\t")).toBe(expected);
    }
  });

  test("every call of the filter's list is refused", async () => {
    const source = readFileSync(SUPERVISOR, "utf8");
    const denied = [...source.matchAll(/DENY\((\w+), (\d+)\)/g)].slice(0);
    expect(denied.length).toBeGreaterThan(40);
    const calls = denied.map(([, name, number]) => `("${name}", ${number})`).join(", ");
    const answers = await lines(`for name, number in (${calls}): print(name, call(number))`);
    expect(answers).toEqual(denied.map(([, name]) => `${name} EPERM`));
  });

  test("every call that keeps memory where nobody counts it is as if the kernel had none", async () => {
    const source = readFileSync(SUPERVISOR, "utf8");
    const lacking = [...source.matchAll(/LACK\((\w+), (\d+), (\w+)\)/g)];
    expect(lacking.length).toBeGreaterThan(8);
    const calls = lacking.map(([, name, number]) => `("${name}", ${number})`).join(", ");
    const answers = await lines(`for name, number in (${calls}): print(name, call(number))`);
    expect(answers).toEqual(lacking.map(([, name, , error]) => `${name} ${error}`));
  });

  test("buffers of sockets keep their size, segments of shared memory have a page, and nobody hides", async () => {
    const answers = await lines(`s = socket.socket(socket.AF_UNIX)
sizes = lambda: [s.getsockopt(socket.SOL_SOCKET, name) for name in (socket.SO_SNDBUF, socket.SO_RCVBUF)]
before = sizes()
for name in (socket.SO_SNDBUF, socket.SO_RCVBUF, 32, 33): s.setsockopt(socket.SOL_SOCKET, name, 1 << 30)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
print(sizes() == before, s.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR))
page = libc.shmget(0, 4096, 0o1600)
print(libc.shmctl(page, 0, None), call(29, 0, 4097, 0o1600), call(29, 0, 1 << 32, 0o1600))
print(call(157, 4, 0), call(157, 4, 1), call(157, 15, b"name"))
print(attempt(lambda: mmap.mmap(os.open("/dev/zero", os.O_RDWR), 4096)), open("/dev/zero", "rb").read(2))
print(resource.getrlimit(resource.RLIMIT_MSGQUEUE if hasattr(resource, "RLIMIT_MSGQUEUE") else 12)[1] <= 819200)`);
    expect(answers).toEqual([
      "True 1",
      "0 EINVAL EINVAL",
      "EPERM done done",
      "ENODEV b'\\x00\\x00'",
      "True",
    ]);
  });

  test("/dev can't be written to, whoever runs the service", async () => {
    const answers =
      await lines(`for path in ("/dev/new", "/dev/null/x", "/dev/shm/new", "/dev/pts/new"):
    print(attempt(lambda: open(path, "w").close()))
print(attempt(os.mkdir, "/dev/x"), attempt(os.unlink, "/dev/zero"), attempt(os.symlink, "/", "/dev/x"), attempt(os.chmod, "/dev", 0o777))`);
    expect(answers.slice(0, 3)).toEqual(["EROFS", "ENOTDIR", "done"]);
    expect(answers[3]).not.toBe("done");
    expect(answers[4]).toBe("EROFS EROFS EROFS EROFS");
  });

  test("a sandbox can't take the node's terminals from its neighbours", async () => {
    const answers = await lines(`import pty
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
count = 0
try:
    while True: os.open("/dev/ptmx", os.O_RDWR); count += 1
except OSError as error: print(errno.errorcode[error.errno], count <= 128)`);
    expect(answers).toEqual(["ENOSPC True"]);
  });

  test("no namespace can be made: not by unshare, clone or clone3", async () => {
    const flags = [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000];
    const answers = await lines(`import struct
for flag in (${flags.join(", ")}):
    arguments = ctypes.create_string_buffer(struct.pack("8Q", flag, 0, 0, 0, 17, 0, 0, 0))
    print(call(272, flag), call(56, flag | 17), call(435, ctypes.addressof(arguments), 64))
print(call(272, 0x80), call(56, 0x10000000 | 0x40000000 | 17))`);
    expect(answers).toEqual([...flags.map(() => "EPERM EPERM ENOSYS"), "EPERM EPERM"]);
  });

  test("no other namespace can be entered, also one that a descriptor is at hand for", async () => {
    const answers = await lines(`for name in ("user", "pid", "net", "mnt", "uts", "ipc"):
    print(call(308, os.open("/proc/self/ns/" + name, os.O_RDONLY)))`);
    expect(answers).toEqual(Array(6).fill("EPERM"));
  });

  test("nothing can be mounted, unmounted or made writable again", async () => {
    const answers = await lines(`import ctypes
path = lambda text: ctypes.addressof(ctypes.create_string_buffer(text))
keep = [ctypes.create_string_buffer(t) for t in (b"none", b"/tmp", b"tmpfs", b"/proc", b"/run/rollout", b"proc")]
none, tmp, tmpfs, proc, rollout, procfs = map(ctypes.addressof, keep)
print(call(165, none, tmp, tmpfs), call(165, none, tmp, procfs), call(165, 0, proc, 0, 32 | 4096), call(165, 0, rollout, 0, 32 | 4096))
print(call(166, proc, 2), call(166, rollout, 2), call(155, tmp, tmp), call(161, tmp), call(430, tmpfs), call(428, -100, tmp, 1))`);
    expect(answers.join(" ")).toMatch(/^(EPERM ?){10}$/);
  });

  test("no io_uring, eBPF, performance counter, key or user fault handler can be had", async () => {
    const answers = await lines(`keep = ctypes.create_string_buffer(256)
at = ctypes.addressof(keep)
print(call(425, 8, at), call(321, 0, at, 120), call(298, at, 0, -1, -1), call(248, at, at, at, 1, -3), call(250, 0, -3), call(323, 1))`);
    expect(answers).toEqual(["EPERM EPERM EPERM EPERM EPERM EPERM"]);
  });

  test("system calls of i386 and x32 do not go around the filter", async () => {
    expect(await lines("print(call(0x40000000 | 39), call(0x40000000 | 272))")).toEqual([
      "EPERM EPERM",
    ]);
    const { stdout, signal } = await python(`code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex("b814000000cd80c3")) # getpid, by int 0x80
function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
print(function(), flush=True); os._exit(0)`);
    // A kernel without i386 programs kills instead.
    if (signal !== 11) expect(stdout).toBe(`${-1}\n`);
  });

  test("nothing can be typed into a terminal by TIOCSTI", async () => {
    const program = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b'x')";
    const { output } = await (await sandbox.shell()).run(`python3 -c "${program}"`, RUN);
    expect(output).toContain("Operation not permitted");
    const high = await lines("print(call(16, 0, 0x5412 | 1 << 40, 0))");
    expect(high).toEqual(["EPERM"]);
  });

  test("the filter can't be taken off", async () => {
    const answers = await lines(`print(call(317, 0, 0, 0), call(157, 22, 0))
print(call(157, 38, 0, 0, 0, 0), call(272, 0))`);
    expect(answers.at(-1)).toEndWith("EPERM");
  });

  // ---- network and IPC ----

  test("servers of the host's loopback are out of reach by TCP", async () => {
    let connections = 0;
    const socket = { open: () => void connections++, data() {} };
    using four = Bun.listen({ hostname: "127.0.0.1", port: 0, socket });
    using six = Bun.listen({ hostname: "::1", port: 0, socket });
    const answers =
      await lines(`for family, host, port in ((socket.AF_INET, "127.0.0.1", ${four.port}), (socket.AF_INET6, "::1", ${six.port})):
    print(attempt(socket.socket(family).connect, (host, port)))`);
    expect({ answers, connections }).toEqual({
      answers: ["ECONNREFUSED", "ECONNREFUSED"],
      connections: 0,
    });
  });

  test("nor by UDP", async () => {
    let packets = 0;
    const server = await Bun.udpSocket({
      hostname: "127.0.0.1",
      socket: { data: () => void packets++ },
    });
    await lines(`s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(3): print(attempt(s.sendto, b"x", ("127.0.0.1", ${server.port})))`);
    await sh("true");
    server.close();
    expect(packets).toBe(0);
  });

  test("there is no way out of the node", async () => {
    const answers =
      await lines(`for family, host in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
    print(attempt(socket.socket(family).connect, (host, 80)))
print(open("/proc/net/route").read().count("\\n"), attempt(socket.getaddrinfo, "example.org", 80))`);
    expect(answers).toEqual(["ENETUNREACH", "ENETUNREACH", "1 no name"]);
  });

  test("netlink, packet, vsock and all other families of sockets are refused", async () => {
    const answers = await lines(`for family in [*range(0, 50), 1 << 16 | 16]:
    if family in (1, 2, 10): continue
    print({call(number, family, kind, 0, ctypes.addressof(ctypes.create_string_buffer(8))) for number in (41, 53) for kind in (1, 2, 3, 5)})`);
    expect([...new Set(answers)]).toEqual(["{'EPERM'}"]);
  });

  test("raw sockets are refused", async () => {
    const answers = await lines(
      "print(call(41, 2, 3, 1), call(41, 10, 3, 58), call(41, 2, 3, 255))",
    );
    expect(answers).toEqual(["EPERM EPERM EPERM"]);
  });

  test("the host's abstract sockets are out of reach", async () => {
    let connections = 0;
    const name = `rolloutd-${crypto.randomUUID()}`;
    const host = Bun.listen({
      unix: `\0${name}`,
      socket: { open: () => void connections++, data() {} },
    });
    expect(readFileSync("/proc/net/unix", "utf8")).toContain(name);
    const answers = await lines(`print(attempt(socket.socket(socket.AF_UNIX).connect, "\\0${name}"))
print("${name}" in open("/proc/net/unix").read())`);
    host.stop(true);
    expect({ answers, connections }).toEqual({
      answers: ["ECONNREFUSED", "False"],
      connections: 0,
    });
  });

  test("no socket file of the host's is there: the service's, munge's, D-Bus's, Docker's", async () => {
    using _socket = Bun.listen({
      unix: join(bundle.dataDir, "rolloutd.sock"),
      socket: { data() {} },
    });
    const { stdout } = await sh(
      "find / -xdev -type s ! -path '/run/io/*'; find /run /var/run /tmp -type s ! -path '/run/io/*'",
    );
    expect(stdout).toBe("");
  });

  test("shared memory of the host's by System V's calls is not there", async () => {
    const id = libc.shmget(0x5b0a_1234, 4096, 0o1666);
    expect(id).toBeGreaterThanOrEqual(0);
    try {
      const answers = await lines(
        `print(len(open("/proc/sysvipc/shm").readlines()), call(29, 0x5b0a1234, 4096, 0))`,
      );
      expect(answers).toEqual(["1 ENOENT"]);
    } finally {
      libc.shmctl(id, 0, null);
    }
  });

  // ---- from the host's side ----

  test("the sandbox's folders on the host are closed to other users", () => {
    for (const path of [sandbox.handle.dir, join(sandbox.handle.dir, "io"), bundle.dataDir]) {
      expect([path, statSync(path).mode & 0o077]).toEqual([path, 0]);
    }
  });

  test("files that the host takes out are what they seem: no link, device or pipe leads it astray", async () => {
    await sh(
      `cd /tmp; ln -s ${canaries}/${HIDDEN} link; ln -s /proc/1/environ loop; mkfifo pipe; ln -s / root`,
    );
    for (const [path, code] of [
      ["/tmp/link", "ENOENT"],
      ["/tmp/loop", "EACCES"],
      ["/tmp/pipe", "EINVAL"],
      ["/dev/zero", "EINVAL"],
      [`/tmp/root/../../../..${canaries}/${HIDDEN}`, "ENOENT"],
    ] as const) {
      expect(await failure(sandbox.readFile(path, 1000))).toMatchObject({ code });
    }
    // What reads is a child of PID 1's.
    const environ = await sandbox.readFile("/proc/self/environ", 10_000).catch(() => "");
    expect(Buffer.from(environ).toString().replaceAll("\0", "")).toBe("");
  });
}

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { endSandbox } from "../../src/sandbox/end.ts";
import { INSIDE } from "../../src/sandbox/environment.ts";
import type { DriverName } from "../../src/sandbox/sandbox.ts";
import { watchSandbox } from "../../src/sandbox/watchdog.ts";
import { waitFor } from "../support/wait-for.ts";
import { EXEC, LIMITS, leftovers, setup } from "./setup.ts";
import { asUnprivilegedUser } from "./unprivileged.ts";

setDefaultTimeout(60_000);

const MB = 1024 * 1024;
const DRIVERS: DriverName[] = ["apptainer", "bubblewrap"];

const PRELUDE = `import array, ctypes, mmap, os, resource, socket, struct, time
MB = 1048576
libc = ctypes.CDLL(None, use_errno=True)
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
kept, kept_bytes = [], 0
def fill(sock):
    "Until the buffers are full; how much went in."
    sock.setblocking(False)
    sent = 0
    try:
        while True: sent += sock.send(bytes(65536))
    except (BlockingIOError, OSError): return sent
`;

/** One process has no more descriptors than it may have. */
const UNTIL_REFUSED = `import sys
try: exec(sys.argv[1])
except OSError as error: print(error, file=sys.stderr)
time.sleep(100)`;

/** Each would keep 1,000 MB of the node's memory, and is over by itself. */
const HOARDS: [string, string][] = [
  [
    "in the buffers of socket pairs, however large they ask for them to be",
    `while kept_bytes < 1000 * MB:
    a, b = socket.socketpair()
    for end in (a, b): end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * MB)
    kept += [a, b]; kept_bytes += fill(a) + fill(b)`,
  ],
  [
    "in datagrams",
    `while kept_bytes < 1000 * MB:
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); kept += [a, b]; kept_bytes += fill(a) + fill(b)`,
  ],
  [
    "in connections that nobody accepts, from sockets that are closed",
    `server = socket.socket(socket.AF_UNIX); server.bind("\\0x"); server.listen(4096)
while kept_bytes < 1000 * MB:
    client = socket.socket(socket.AF_UNIX); client.setblocking(False)
    try: client.connect("\\0x")
    except BlockingIOError:
        kept.append(server); server = socket.socket(socket.AF_UNIX); server.bind(f"\\0x{len(kept)}"); server.listen(4096)
        break
    kept_bytes += fill(client); client.close()`,
  ],
  [
    "in sockets that are on their way in others",
    `carrier, end = socket.socketpair()
while kept_bytes < 1000 * MB:
    a, b = socket.socketpair(); kept_bytes += fill(a)
    try: socket.send_fds(carrier, [b"x"], [a.fileno(), b.fileno()])
    except OSError: break
    a.close(); b.close()
    if len(kept) % 64 == 63: kept += [carrier, end]; carrier, end = socket.socketpair()
    kept.append(None)`,
  ],
  [
    "in TCP connections of its own loopback",
    `server = socket.create_server(("127.0.0.1", 0), backlog=4096)
while kept_bytes < 1000 * MB:
    client = socket.create_connection(server.getsockname()); other, _ = server.accept()
    kept += [client, other]
    for _ in range(4): kept_bytes += fill(client) + fill(other); time.sleep(0.001)`,
  ],
  [
    "in UDP packets",
    `for _ in range(9):
    if os.fork() == 0: break
while kept_bytes < 100 * MB:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0)); s.connect(s.getsockname())
    s.setblocking(False); kept.append(s); kept_bytes += 212992
    for _ in range(16): s.send(bytes(32768))`,
  ],
  [
    "in shared memory that a child has filled and left",
    `m = mmap.mmap(-1, 1000 * MB)
if os.fork() == 0:
    for at in range(0, 1000 * MB, MB): m[at:at + MB] = bytes(MB); m.madvise(mmap.MADV_DONTNEED, at, MB)
    os._exit(0)
os.wait()`,
  ],
  [
    "in shared memory of which it has given all but a page back",
    `libc.mmap.restype = ctypes.c_void_p
libc.munmap.argtypes, libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_size_t], [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
for i in range(20):
    at = libc.mmap(None, ctypes.c_size_t(50 * MB), 3, 0x21, -1, ctypes.c_size_t(0))
    for part in range(0, 50 * MB, MB):
        libc.memset(at + part, 1, MB)
        if part: libc.munmap(at + part, MB)`,
  ],
  [
    "in page tables of memory that it only reads",
    `libc.mmap.restype = ctypes.c_void_p
size = 250 * 1000 * 2 * MB
at = libc.mmap(None, ctypes.c_size_t(size), 1, 0x4022, -1, ctypes.c_size_t(0))
libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(size), 15)
for part in range(at, at + size, 2 * MB): ctypes.c_byte.from_address(part).value`,
  ],
  [
    "in lists of mappings, one for each of many processes",
    `m = mmap.mmap(-1, 65000 * 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
at = ctypes.addressof(ctypes.c_char.from_buffer(m))
for page in range(0, 64000, 2): libc.mprotect(ctypes.c_void_p(at + page * 4096), ctypes.c_size_t(4096), 1)
for _ in range(8):
    if os.fork() == 0: time.sleep(100)`,
  ],
  [
    "in pipes and their files",
    `for _ in range(60):
    if os.fork() == 0:
        try:
            while True: os.write(os.pipe()[1], bytes(4096))
        except OSError: pass
        time.sleep(100)`,
  ],
];

describe.each(DRIVERS)("%s:", (driver) => {
  async function ends(program: string, limits: Partial<typeof LIMITS>) {
    await using bundle = await setup(driver);
    const all = { ...LIMITS, ...limits };
    const sandbox = await bundle.open({ limits: all });
    using watch = watchSandbox(sandbox.handle, all);
    const argv = ["python3", "-c", `${PRELUDE}${UNTIL_REFUSED}`, program];
    const hoarding = sandbox.exec(argv, EXEC);
    let said = "";
    hoarding.then(
      ({ stderr, exitCode }) => (said = `it ended with ${exitCode}: ${stderr}`),
      () => {},
    );
    await waitFor(() => watch.crossed.aborted || said !== "", "the watchdog to end it");
    expect(said).toBe("");
    const { clean } = await endSandbox(sandbox.handle);
    return { code: watch.crossed.reason?.code, clean, left: await leftovers(sandbox.handle) };
  }

  test.each(HOARDS)("memory is charged that a sandbox keeps %s", async (_where, program) => {
    const end = await ends(program, {
      memoryBytes: (program.includes("mprotect") ? 100 : 300) * MB,
    });
    expect(end).toEqual({ code: "oom", clean: true, left: [] });
  });

  test.each([
    ["descriptors that are on their way", "socket.send_fds(a, [b'x'], [f.fileno()])"],
    ["mappings", "kept.append(mmap.mmap(f.fileno(), 4096))"],
    [
      "processes that show nothing",
      `if not os.path.exists("/tmp/p"): os.system("cp /usr/bin/python3 /tmp/p; chmod 111 /tmp/p")
    if os.fork() == 0: os.dup2(f.fileno(), 9); os.set_inheritable(9, True); os.execv("/tmp/p", ["p", "-c", "import time; time.sleep(100)"])`,
    ],
  ])("disk is charged that a sandbox keeps in deleted files of %s", async (_where, hide) => {
    const program = `os.chdir("${INSIDE.io}"); a, b = socket.socketpair()
for i in range(20):
    f = open(f"f{i}", "w+b"); os.unlink(f"f{i}"); f.write(bytes(4096)); f.flush()
    ${hide}
    time.sleep(0.3)
    os.posix_fallocate(f.fileno(), 0, 20 * MB)
    f.close()`;
    const end = await ends(program, { diskBytes: 100 * MB });
    expect(end).toEqual({ code: "disk_limit", clean: true, left: [] });
  });

  test("what a database, a web server and a pool of workers use is no hoard", async () => {
    await using bundle = await setup(driver);
    const limits = { ...LIMITS, memoryBytes: 400 * MB };
    const sandbox = await bundle.open({ limits });
    using watch = watchSandbox(sandbox.handle, limits);
    const program = `${PRELUDE}
import multiprocessing, threading
def work(n): return n * n
if __name__ == "__main__":
    for _ in range(200): mmap.mmap(-1, MB).close()
    shared = [mmap.mmap(-1, 4096) for _ in range(50)] + [mmap.mmap(-1, 100 * MB)]
    pairs = [socket.socketpair() for _ in range(50)]
    server = socket.create_server(("127.0.0.1", 0), backlog=500)
    clients = [(socket.create_connection(server.getsockname()), server.accept()) for _ in range(300)]
    with multiprocessing.Pool(8) as pool: print(sum(pool.map(work, range(1000))))
    time.sleep(2.5)
    print("done")`;
    const ended = await sandbox.exec(["python3", "-c", program], EXEC).catch(() => null);
    expect([watch.crossed.reason?.message, ended?.stderr, ended?.stdout]).toEqual([
      undefined,
      "",
      "332833500\ndone\n",
    ]);
  });
});

if (process.getuid?.() === 0) {
  test("an unprivileged user's sandboxes are charged the same", async () => {
    const { exitCode, output } = await asUnprivilegedUser("test/sandbox/hidden-memory.test.ts");
    expect({ exitCode, output: exitCode === 0 ? "" : output }).toEqual({ exitCode: 0, output: "" });
  }, 300_000);
}

/** Stops itself, its child and a child of another session: nothing but SIGKILL and SIGCONT is heard. */
export const STOPPED = [
  "python3",
  "-c",
  `import os, signal
if os.fork() == 0:
    os.setsid()
    os.fork()
os.kill(os.getpid(), signal.SIGSTOP)`,
];

/**
 * Asks a FUSE file system, in a mount namespace of its own, whose server never answers; then there is a file
 * `asked`. Who waits for a request that the server has read can't be killed before the server is, which has
 * left the session.
 */
export const HANGING_FUSE = [
  "unshare",
  "--mount",
  "python3",
  "-c",
  `import ctypes, os, struct
folder = os.path.realpath("hanging")
os.mkdir(folder)
device = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mount(b"hanging", folder.encode(), b"fuse", 0, options) == 0, ctypes.get_errno()
if os.fork() != 0:
    os.close(device)
    os.stat(folder + "/file")
os.setsid()
unique = struct.unpack("<IIQ", os.read(device, 1 << 20)[:16])[2]
init = struct.pack("<IIIIHHIIHH", 7, 31, 65536, 0, 12, 9, 65536, 1, 16, 0) + bytes(32)
os.write(device, struct.pack("<IiQ", 16 + len(init), 0, unique) + init)
os.read(device, 1 << 20)
open("asked", "w").close()
while True:
    os.read(device, 1 << 20)`,
];

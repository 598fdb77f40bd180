import { dlopen, type Pointer, read } from "bun:ffi";
import { readlinkSync } from "node:fs";

const F_DUPFD_CLOEXEC = 1030;
/** EIO, EBADF, EINVAL, ENOLCK, ENOSYS, EOPNOTSUPP. */
const FLOCK_ERRORS = [5, 9, 22, 37, 38, 95];
const LOCK_NB = 4;
const LOCK = { shared: 1, exclusive: 2, none: 8 };

const libc = dlopen("libc.so.6", {
  fcntl: { args: ["i32", "i32", "i32"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
  flock: { args: ["i32", "i32"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
});

/** A second descriptor for the same open file, which children do not inherit. Null: `fd` is not open. */
export function duplicateFd(fd: number): number | null {
  const copy = libc.symbols.fcntl(fd, F_DUPFD_CLOEXEC, 3);
  return copy < 0 ? null : copy;
}

export function closeFd(fd: number): void {
  libc.symbols.close(fd);
}

/**
 * Takes, changes or gives up the lock of an open file, without waiting. It belongs to the open file and to
 * every copy of its descriptor: the kernel frees it with the last one, however its holder ends.
 *
 * @returns false where another open file's lock is in the way; one that was held is then lost.
 */
export function flock(fd: number, kind: keyof typeof LOCK): boolean {
  if (libc.symbols.flock(fd, LOCK[kind] | LOCK_NB) === 0) return true;
  const errno = read.i32(libc.symbols.__errno_location() as Pointer);
  // Where it is none of these the lock is in the way: what the runtime itself asked the kernel between the two calls
  // may have left another number.
  if (!FLOCK_ERRORS.includes(errno)) return false;
  throw new Error(`flock of descriptor ${fd} failed with errno ${errno}`);
}

/** What `fd` is, such as `socket:[4711]`: unique while it is open, unlike its number. */
export function fdIdentity(fd: number): string | null {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return null;
  }
}

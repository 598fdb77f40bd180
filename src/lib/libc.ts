import { dlopen } from "bun:ffi";
import { readlinkSync } from "node:fs";

const F_DUPFD_CLOEXEC = 1030;

const libc = dlopen("libc.so.6", {
  fcntl: { args: ["i32", "i32", "i32"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
});

/** A second descriptor for the same open file, which children do not inherit. Null: `fd` is not open. */
export function duplicateFd(fd: number): number | null {
  const copy = libc.symbols.fcntl(fd, F_DUPFD_CLOEXEC, 3);
  return copy < 0 ? null : copy;
}

export function closeFd(fd: number): void {
  libc.symbols.close(fd);
}

/** What `fd` is, such as `socket:[4711]`: unique while it is open, unlike its number. */
export function fdIdentity(fd: number): string | null {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return null;
  }
}

import { constants } from "node:os";

// Some have two names (EAGAIN, EWOULDBLOCK): the first in order is the usual one.
const NAMES = new Map(
  Object.entries(constants.errno)
    .sort(([a], [b]) => (a < b ? 1 : -1))
    .map(([name, number]) => [number, name]),
);

export function errnoName(errno: number): string {
  return NAMES.get(errno) ?? `errno ${errno}`;
}

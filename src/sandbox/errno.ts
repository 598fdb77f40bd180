import { constants } from "node:os";

// Some have two names (EAGAIN, EWOULDBLOCK): the first in order is the usual one.
const NAMES = new Map(
  Object.entries(constants.errno)
    .sort(([a], [b]) => (a < b ? 1 : -1))
    .map(([name, number]) => [number, name]),
);

/** Somebody has used up what the kernel gives: it may be there a moment later. */
const SHORTAGES = ["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"];

export function isShortage(name: string | undefined): boolean {
  return name !== undefined && SHORTAGES.includes(name);
}

export function errnoName(errno: number): string {
  return NAMES.get(errno) ?? `errno ${errno}`;
}

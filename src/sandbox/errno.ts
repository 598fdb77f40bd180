import { constants } from "node:os";

const NAMES = new Map(Object.entries(constants.errno).map(([name, number]) => [number, name]));

export function errnoName(errno: number): string {
  return NAMES.get(errno) ?? `errno ${errno}`;
}

import { readFileSync } from "node:fs";

/** As in `supervisor.c`, `publish`. */
const LARGEST = 16;
const DIGITS = 8;
const PAGE_BYTES = 4096;

/** The supervisor's last argument before a process of its sandbox has mapped shared memory without a name. */
export const NO_MAPPINGS = "0".repeat(LARGEST * DIGITS);

/**
 * The largest mappings of shared memory without a name that processes of a sandbox have ever asked for, in
 * descending order, as its supervisor tells them. Units: bytes.
 */
export function largestMappings(holderPid: number): number[] {
  let text: string;
  try {
    text = readFileSync(`/proc/${holderPid}/cmdline`, "latin1");
  } catch {
    return [];
  }
  const last = text.replace(/\0+$/, "").split("\0").at(-1) ?? "";
  if (last === NO_MAPPINGS || !/^[0-9a-f]{128}$/.test(last)) return [];
  const pages = last.match(/.{8}/g)?.map((digits) => Number.parseInt(digits, 16)) ?? [];
  return pages.filter((count) => count > 0).map((count) => count * PAGE_BYTES);
}

/** The most that `objects` pieces of such memory can hold. */
export function mostSharedBytes(largest: number[], objects: number): number {
  const counted = largest.slice(0, objects).reduce((sum, bytes) => sum + bytes, 0);
  const further = Math.max(0, objects - LARGEST);
  return counted + further * (largest[LARGEST - 1] ?? 0);
}

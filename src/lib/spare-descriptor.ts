import { closeSync, openSync } from "node:fs";

const NONE_LEFT = ["EMFILE", "ENFILE"];

/** Given up for as long as a look takes where the process has no other descriptor left. */
let spare: number | null = null;

/**
 * Does what needs one descriptor at a time, also where all are taken: who can't look at a process must not take it for
 * one that has ended.
 */
export function withSpareDescriptor<T>(work: () => T): T {
  spare ??= take();
  try {
    return work();
  } catch (error) {
    if (spare === null || !NONE_LEFT.includes((error as NodeJS.ErrnoException).code ?? "")) {
      throw error;
    }
    closeSync(spare);
    spare = null;
    try {
      return work();
    } finally {
      spare = take();
    }
  }
}

function take(): number | null {
  try {
    return openSync("/dev/null", "r");
  } catch {
    return null;
  }
}

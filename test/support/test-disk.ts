import type { Disk } from "../../src/store/disk-file.ts";

/** A disk that answers when the test says so, however long that takes. */
export function testDisk(sync: Disk["sync"]): Disk {
  const syncNow = () => {
    throw new Error("nobody is to wait for the disk on this thread");
  };
  return { sync, syncNow, patienceMs: Number.POSITIVE_INFINITY };
}

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";

/** A private folder on local disk with a short path (Unix sockets go into it), gone at the end of scope. */
export function tempDir(): Disposable & { path: string; file(name: string): string } {
  const path = mkdtempSync("/var/tmp/rt-");
  return {
    path,
    file: (name) => join(path, name),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

import { Database } from "bun:sqlite";
import { copyFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { tempDir } from "./temp-dir.ts";

/** The database that a dead service left, in a copy: looking at it changes nothing of what is there. */
export function openCopy(dataDir: string): Disposable & { db: Database } {
  const dir = tempDir();
  for (const name of readdirSync(dataDir).filter((it) => /^rolloutd\.db(-wal)?$/.test(it))) {
    copyFileSync(join(dataDir, name), dir.file(name));
  }
  const db = new Database(dir.file("rolloutd.db"));
  return {
    db,
    [Symbol.dispose]() {
      db.close();
      dir[Symbol.dispose]();
    },
  };
}

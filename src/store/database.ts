import { Database, SQLiteError } from "bun:sqlite";
import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { makePrivateFolder } from "../lib/private-folder.ts";
import { migrate } from "./migrations.ts";

const LOCAL_DISK = "choose a folder on a local disk with --data-dir";

/**
 * Opens the job table, with every pragma set and read back. The lock it takes lasts as long as the process,
 * so one service owns a data folder, and `kill -9` frees it.
 *
 * @throws ServiceError `data_dir_unusable`, `data_dir_in_use`
 */
export function openDatabase(dataDir: string): Database {
  prepareFolder(dataDir);
  let db: Database | undefined;
  try {
    db = new Database(join(dataDir, "rolloutd.db"), { create: true, strict: true });
    configure(db);
    migrate(db);
    return db;
  } catch (error) {
    db?.close();
    throw explain(error, dataDir);
  }
}

/**
 * Folds the WAL into the database and gives up the lock. A plain `close` would keep it until the garbage
 * collector has found the last prepared statement.
 */
export function closeDatabase(db: Database): void {
  db.run("PRAGMA journal_mode = DELETE");
  db.run("PRAGMA locking_mode = NORMAL");
  db.query("SELECT count(*) FROM sqlite_schema").get();
  db.close();
}

/** Makes a private folder, or checks that the one that is there is ours and on a local disk. */
export function prepareFolder(dataDir: string): void {
  const problem = makePrivateFolder(dataDir);
  if (problem === null) return;
  const { why, mend = LOCAL_DISK, cause } = problem;
  const message = `the data folder ${dataDir} ${why}`;
  throw new ServiceError("data_dir_unusable", message, { mend, cause });
}

function configure(db: Database): void {
  // Exclusive locking comes first: WAL then needs no shared memory file, and a second service is refused.
  const pragmas: [name: string, value: string | number, reads: string | number][] = [
    ["locking_mode", "EXCLUSIVE", "exclusive"],
    ["journal_mode", "WAL", "wal"],
    ["synchronous", "FULL", 2],
    ["foreign_keys", 1, 1],
    ["busy_timeout", 0, 0],
  ];
  for (const [name, value, expected] of pragmas) {
    db.run(`PRAGMA ${name} = ${value}`);
    const row = db.query(`PRAGMA ${name}`).values()[0];
    if (row?.[0] !== expected) throw new Error(`PRAGMA ${name} is ${row?.[0]}, not ${expected}`);
  }
  // A write takes the lock now rather than at the first job.
  db.run("BEGIN IMMEDIATE; COMMIT");
}

function explain(error: unknown, dataDir: string): unknown {
  if (!(error instanceof SQLiteError)) return error;
  if (error.code === "SQLITE_BUSY" || error.code === "SQLITE_LOCKED") {
    const message = `another rolloutd works in ${dataDir}`;
    const mend = "stop it, or give this one a --data-dir of its own";
    return new ServiceError("data_dir_in_use", message, { mend, cause: error });
  }
  const message = `the database in ${dataDir} can't be opened: ${error.message}`;
  const mend = "move rolloutd.db and rolloutd.db-wal aside to start with an empty one";
  return new ServiceError("data_dir_unusable", message, { mend, cause: error });
}

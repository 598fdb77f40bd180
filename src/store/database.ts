import { Database, SQLiteError } from "bun:sqlite";
import { existsSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { makePrivateFolder } from "../lib/private-folder.ts";
import { migrate } from "./migrations.ts";

const LOCAL_DISK = "choose a folder on a local disk with --data-dir";

/** Above this size a start takes the database as it is: a check would take longer than a start may. */
const CHECKED_BYTES = 64 * 1024 * 1024;

export const DATABASE_FILE = "rolloutd.db";

/** Beside the database; a folder's whole state is in both. */
export const LOG_FILE = "rolloutd.db-wal";

const DAMAGE = ["SQLITE_CORRUPT", "SQLITE_NOTADB"];

/**
 * Opens the job table, with every pragma set and read back. The lock it takes lasts as long as the process,
 * so one service owns a data folder, and `kill -9` frees it.
 *
 * @param recover sets a damaged database aside and begins an empty one
 * @throws ServiceError `data_dir_unusable`, `data_dir_in_use`, `data_damaged`
 */
export function openDatabase(dataDir: string, recover = false): Database {
  prepareFolder(dataDir);
  const path = join(dataDir, DATABASE_FILE);
  try {
    return open(path);
  } catch (error) {
    const refusal = explain(error, dataDir);
    if (!recover || !(refusal instanceof ServiceError) || refusal.code !== "data_damaged") {
      throw refusal;
    }
    setAside(path);
    return open(path);
  }
}

function open(path: string): Database {
  const db = new Database(path, { create: true, strict: true });
  try {
    configure(db);
    if (statSync(path).size <= CHECKED_BYTES) check(db);
    migrate(db);
    // What would undo a statement is half of what a submit writes; so it is no file, but not while indexes are built.
    db.run("PRAGMA temp_store = MEMORY");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function check(db: Database): void {
  const problem = db.query("PRAGMA quick_check(1)").values()[0]?.[0];
  if (problem !== "ok") throw damaged(String(problem));
}

function setAside(path: string): void {
  const suffix = `damaged-${Date.now()}`;
  for (const file of [path, `${path}-wal`]) {
    if (existsSync(file)) renameSync(file, `${file}.${suffix}`);
  }
}

function damaged(problem: string, cause?: unknown): ServiceError {
  const mend =
    "put a copy of it back, or start once with --recover, which sets it aside: its rollouts are lost";
  const message = `the database is damaged: ${problem}`;
  return new ServiceError("data_damaged", message, { mend, cause });
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
  // Has an effect on a new file only; an older one reuses its free pages and does not shrink.
  db.run("PRAGMA auto_vacuum = INCREMENTAL");
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
  if (DAMAGE.some((code) => error.code?.startsWith(code))) return damaged(error.message, error);
  const message = `the database in ${dataDir} can't be opened: ${error.message}`;
  const mend = "move rolloutd.db and rolloutd.db-wal aside to start with an empty one";
  return new ServiceError("data_dir_unusable", message, { mend, cause: error });
}

import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { closeDatabase, openDatabase, prepareFolder } from "../../src/store/database.ts";
import { failureOf } from "../support/failure.ts";
import { tempDir } from "../support/temp-dir.ts";

const UNUSABLE = { code: "data_dir_unusable", boundary: "service", retryable: false } as const;
const LOCAL_DISK = "choose a folder on a local disk with --data-dir";

describe("opening a data folder", () => {
  test("makes it, for its owner alone", () => {
    using dir = tempDir();
    const path = dir.file("a/b");
    closeDatabase(openDatabase(path));
    expect(statSync(path).mode & 0o777).toBe(0o700);
  });

  test("sets what durability and exclusiveness rest on", () => {
    using dir = tempDir();
    const db = openDatabase(dir.path);
    const names = ["locking_mode", "journal_mode", "synchronous", "foreign_keys", "busy_timeout"];
    const values = names.map((name) => [name, db.query(`PRAGMA ${name}`).values()[0]?.[0]]);
    closeDatabase(db);
    expect(Object.fromEntries(values)).toEqual({
      locking_mode: "exclusive",
      journal_mode: "wal",
      synchronous: 2,
      foreign_keys: 1,
      busy_timeout: 0,
    });
  });

  test("is refused while another has it open, and possible again once that is closed", async () => {
    using dir = tempDir();
    const first = openDatabase(dir.path);
    expect(await failureOf(() => openDatabase(dir.path))).toEqual({
      code: "data_dir_in_use",
      message: `another rolloutd works in ${dir.path}`,
      boundary: "service",
      retryable: false,
      mend: "stop it, or give this one a --data-dir of its own",
    });
    closeDatabase(first);
    closeDatabase(openDatabase(dir.path));
  });

  test("is refused also where the owner has taken over from one that was killed", async () => {
    using dir = tempDir();
    closeDatabase(openDatabase(dir.path));
    const killed = new Database(dir.file("rolloutd.db"));
    killed.run("PRAGMA journal_mode = WAL");
    killed.close();
    const owner = openDatabase(dir.path);
    const { code } = await failureOf(() => openDatabase(dir.path));
    closeDatabase(owner);
    expect(code).toBe("data_dir_in_use");
  });

  test("is refused for another process as well", async () => {
    using dir = tempDir();
    const db = openDatabase(dir.path);
    const module = new URL("../../src/store/database.ts", import.meta.url).pathname;
    const script = `import { openDatabase } from ${JSON.stringify(module)};
      try { openDatabase(${JSON.stringify(dir.path)}) } catch (error) { console.log(error.code) }`;
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "pipe" });
    const printed = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    closeDatabase(db);
    expect(printed).toEqual(["data_dir_in_use\n", "", 0]);
  });

  test("leaves one file behind when it is closed: the log is folded in", () => {
    using dir = tempDir();
    closeDatabase(openDatabase(dir.path));
    const names = ["rolloutd.db", "rolloutd.db-wal", "rolloutd.db-shm", "rolloutd.db-journal"];
    expect(names.filter((name) => existsSync(dir.file(name)))).toEqual(["rolloutd.db"]);
  });
});

describe("a data folder is refused", () => {
  test("that others can write to, with the command that mends it", async () => {
    using dir = tempDir();
    for (const mode of [0o770, 0o707, 0o777]) {
      chmodSync(dir.path, mode);
      expect(await failureOf(() => prepareFolder(dir.path))).toEqual({
        ...UNUSABLE,
        message: `the data folder ${dir.path} can be written by other users`,
        mend: `chmod 700 ${dir.path}`,
      });
    }
    chmodSync(dir.path, 0o755);
    prepareFolder(dir.path);
  });

  test("that belongs to another user", async () => {
    using dir = tempDir();
    // Only root can give a folder away; anybody else finds one that is root's.
    const root = process.getuid?.() === 0;
    if (root) chownSync(dir.path, 1, 1);
    const [path, uid] = root ? [dir.path, 1] : ["/", statSync("/").uid];
    expect(await failureOf(() => prepareFolder(path))).toEqual({
      ...UNUSABLE,
      message: `the data folder ${path} belongs to another user (uid ${uid})`,
      mend: LOCAL_DISK,
    });
  });

  test("that is a file", async () => {
    using dir = tempDir();
    writeFileSync(dir.file("taken"), "");
    expect(await failureOf(() => prepareFolder(dir.file("taken")))).toEqual({
      ...UNUSABLE,
      message: expect.stringContaining(
        `the data folder ${dir.file("taken")} can't be made: EEXIST`,
      ),
      mend: LOCAL_DISK,
    });
  });
});

describe("a damaged database", () => {
  test("is refused, and with recover is set aside, not deleted", async () => {
    using dir = tempDir();
    const db = openDatabase(dir.path);
    db.run("CREATE TABLE filler (text TEXT)");
    for (let i = 0; i < 200; i++) db.run("INSERT INTO filler VALUES (?)", ["x".repeat(1000)]);
    closeDatabase(db);
    const path = dir.file("rolloutd.db");
    const bytes = new Uint8Array(await Bun.file(path).arrayBuffer());
    bytes.fill(0xff, bytes.length / 2, bytes.length / 2 + 20_000);
    writeFileSync(path, bytes);
    expect((await failureOf(() => openDatabase(dir.path))).code).toBe("data_damaged");
    closeDatabase(openDatabase(dir.path, true));
    const aside = readdirSync(dir.path).filter((name) => name.includes(".damaged-"));
    expect(aside.length).toBeGreaterThan(0);
    closeDatabase(openDatabase(dir.path));
  });
});

describe("a database is refused", () => {
  test("that is none, and stays as it is", async () => {
    using dir = tempDir();
    const text = "This is a text, and no database. ".repeat(100);
    writeFileSync(dir.file("rolloutd.db"), text);
    expect(await failureOf(() => openDatabase(dir.path))).toMatchObject({
      code: "data_damaged",
      message: "the database is damaged: file is not a database",
      mend: expect.stringContaining("--recover"),
    });
    expect(await Bun.file(dir.file("rolloutd.db")).text()).toBe(text);
  });

  test("that a newer rolloutd wrote, and stays as it is", async () => {
    using dir = tempDir();
    closeDatabase(openDatabase(dir.path));
    const newer = new Database(dir.file("rolloutd.db"));
    newer.run("PRAGMA user_version = 99");
    newer.close();
    expect(await failureOf(() => openDatabase(dir.path))).toEqual({
      ...UNUSABLE,
      message: expect.stringMatching(/^the database has schema 99; this rolloutd knows up to \d+$/),
      mend: "use the newer rolloutd that wrote it, or another --data-dir",
    });
    const after = new Database(dir.file("rolloutd.db"));
    expect(after.query("PRAGMA user_version").values()).toEqual([[99]]);
    after.close();
  });

  test("and the lock on it is given up, so that it can be mended and opened", async () => {
    using dir = tempDir();
    writeFileSync(dir.file("rolloutd.db"), "no database ".repeat(100));
    await failureOf(() => openDatabase(dir.path));
    await Bun.file(dir.file("rolloutd.db")).delete();
    closeDatabase(openDatabase(dir.path));
  });
});

test("a folder that is used again is not migrated again", () => {
  using dir = tempDir();
  const versionOnce = () => {
    const db = openDatabase(dir.path);
    const [[version] = []] = db.query("PRAGMA user_version").values();
    closeDatabase(db);
    return version;
  };
  const first = versionOnce();
  const before = statSync(dir.file("rolloutd.db"));
  expect([first !== 0, versionOnce()]).toEqual([true, first]);
  expect(statSync(dir.file("rolloutd.db")).size).toBe(before.size);
});

test("a database file that can't be opened is told as what it is", async () => {
  using dir = tempDir();
  mkdirSync(dir.file("rolloutd.db"));
  expect((await failureOf(() => openDatabase(dir.path))).code).toBe("data_dir_unusable");
});

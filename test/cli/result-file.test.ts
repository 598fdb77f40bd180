import { describe, expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import type { OpenMode } from "../../src/cli/open-results.ts";
import { ResultFile } from "../../src/cli/result-file.ts";
import { environment } from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";
import { usageOf } from "./usage.ts";

const open = (path: string, mode: OpenMode = "new") =>
  new ResultFile(path, { mode, input: "/rows.jsonl", resumable: true, echo: false });

describe("a file of results", () => {
  test("is made with its folders, or taken where it is empty", async () => {
    using dir = tempDir();
    writeFileSync(dir.file("empty"), "");
    for (const name of ["empty", "new", "in/a/folder"]) {
      using file = open(dir.file(name));
      file.begin();
      await file.add({ a: 1 });
      expect(readFileSync(dir.file(name), "utf8")).toBe('{"a":1}\n');
    }
  });

  test("with content is refused, unless it is to be replaced, which is not before the first result can come", () => {
    using dir = tempDir();
    writeFileSync(dir.file("old"), "old\n");
    const why = usageOf(() => open(dir.file("old")));
    for (const text of [dir.file("old"), "--resume", "--force"]) expect(why).toContain(text);
    using file = open(dir.file("old"), "force");
    expect(readFileSync(dir.file("old"), "utf8")).toBe("old\n");
    file.begin();
    expect(readFileSync(dir.file("old"), "utf8")).toBe("");
  });

  test("that nothing came to is not left behind", () => {
    using dir = tempDir();
    open(dir.file("new"))[Symbol.dispose]();
    expect(existsSync(dir.file("new"))).toBe(false);
  });

  test("is one run's at a time", () => {
    using dir = tempDir();
    using first = open(dir.file("r"));
    expect(usageOf(() => open(dir.file("r")))).toContain("is another run's");
    expect(usageOf(() => open(dir.file("r"), "force"))).toContain("is another run's");
    first[Symbol.dispose]();
    open(dir.file("r"))[Symbol.dispose]();
  });

  test("is no folder, pipe, device, loop of links, file of rows, and nothing below a file", () => {
    using dir = tempDir();
    execFileSync("mkfifo", [dir.file("pipe")]);
    symlinkSync("loop", dir.file("loop"));
    writeFileSync(dir.file("rows"), "{}\n");
    linkSync(dir.file("rows"), dir.file("again"));
    const paths = [dir.path, dir.file("pipe"), "/dev/full", "/dev/zero", dir.file("loop")];
    for (const path of [...paths, dir.file("rows/below"), `/proc/${process.pid}/nope`]) {
      for (const mode of ["new", "force", "resume"] as const) {
        expect(usageOf(() => open(path, mode))).toContain(path);
      }
    }
    for (const name of ["rows", "again"]) {
      const options = {
        mode: "force",
        input: dir.file("rows"),
        resumable: true,
        echo: false,
      } as const;
      expect(usageOf(() => new ResultFile(dir.file(name), options))).toContain("file of the rows");
    }
    expect(usageOf(() => open(dir.file("none"), "resume"))).toContain("is not there");
  });

  test("may be the null device", async () => {
    using file = open("/dev/null");
    file.begin();
    await file.add({});
    file.finish();
    expect(file.lines).toBe(1);
  });

  test("behind a link keeps the link, and its mode, when lines are taken out", async () => {
    using dir = tempDir();
    mkdirSync(dir.file("store"));
    writeFileSync(dir.file("store/r"), "1\n2\n3\n", { mode: 0o640 });
    symlinkSync("store/r", dir.file("r"));
    using file = open(dir.file("r"), "resume");
    file.begin({ bytes: 6, lines: 3 });
    await file.add(4);
    file.finish([{ start: 2, end: 4 }]);
    expect(file.lines).toBe(3);
    expect(realpathSync(dir.file("r"))).toBe(realpathSync(dir.file("store/r")));
    expect(readFileSync(dir.file("store/r"), "utf8")).toBe("1\n3\n4\n");
    await file.add(5);
    expect(readFileSync(dir.file("r"), "utf8")).toBe("1\n3\n4\n5\n");
  });

  test("that is removed meanwhile is made again, with all it had", async () => {
    using dir = tempDir();
    using file = open(dir.file("r"));
    file.begin();
    await file.add(1);
    rmSync(dir.file("r"));
    await file.add(2);
    expect(readFileSync(dir.file("r"), "utf8")).toBe("1\n2\n");
  });
});

/** Runs `script` in a process that alone sees a disk of 64 KiB at `disk`. */
async function onSmallDisk(disk: string, script: string): Promise<string> {
  const prefix = ["--dev-bind", "/", "/", "--size", "65536", "--tmpfs", disk, "--"];
  const module = Bun.fileURLToPath(import.meta.resolve("../../src/cli/result-file.ts"));
  const program = `import { ResultFile } from ${JSON.stringify(module)};
    import { readFileSync, rmSync, writeFileSync } from "node:fs";
    const disk = ${JSON.stringify(disk)};
    const options = { mode: "new", input: "/rows", resumable: true, echo: false, retryMs: 5, patienceMs: 20 };
    const fill = () => { try { writeFileSync(disk + "/filler", "x".repeat(70_000)); } catch {} };
    ${script}`;
  const argv = [environment("ROLLOUTD_BWRAP"), ...prefix, process.execPath, "-e", program];
  const child = Bun.spawn(argv, { stdout: "pipe", stderr: "pipe" });
  const [out, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return out || errors;
}

describe("on a full disk", () => {
  test("a file is refused before any work is done", async () => {
    using dir = tempDir();
    const said = await onSmallDisk(
      dir.path,
      `fill(); try { new ResultFile(disk + "/r", options); } catch (error) { console.log(error.message); }`,
    );
    expect(said).toContain(`--out ${dir.file("r")} can't be written: ENOSPC`);
  });

  test("a result waits for room, what was written stays whole, and a disk that stays full is told", async () => {
    using dir = tempDir();
    const said = await onSmallDisk(
      dir.path,
      `const file = new ResultFile(disk + "/r", options);
       file.begin();
       await file.add("first".repeat(1000));
       fill();
       const code = await file.add("second".repeat(1000)).then(() => "written", (error) => error.code);
       const whole = readFileSync(disk + "/r", "utf8").endsWith('first"\\n');
       file.path, options.patienceMs = 60_000;
       const waiting = file.add("third".repeat(1000));
       rmSync(disk + "/filler");
       await waiting;
       console.log(code, whole, readFileSync(disk + "/r", "utf8").length, file.lines);`,
    );
    expect(said).toBe(`disk_full true ${5003 * 2} 2\n`);
  });
});

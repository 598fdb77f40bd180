import { expect, test } from "bun:test";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import type { TreePart } from "../../../src/sandbox/tree.ts";
import type { Setup } from "../conformance.ts";
import { EXEC, failure } from "../setup.ts";

const LIMITS = { maxBytes: 100_000_000, maxEntries: 10_000 };

async function shell(sandbox: Sandbox, script: string): Promise<string> {
  const { stdout, stderr, exitCode } = await sandbox.exec(["bash", "-c", script], EXEC);
  if (exitCode !== 0) throw new Error(`${script} ended with ${exitCode}: ${stderr}`);
  return stdout;
}

/** Paths in order, with what there is to say of each; a file with its text. */
async function listed(parts: AsyncIterable<TreePart>): Promise<string[]> {
  const lines: string[] = [];
  for await (const part of parts) {
    if (part.kind === "data") lines[lines.length - 1] += Buffer.from(part.bytes).toString();
    else if (part.kind === "link") lines.push(`${part.path} -> ${part.target}`);
    else if (part.kind === "left") lines.push(`${part.path}: ${part.why}`);
    else if (part.kind === "folder") lines.push(`${part.path}/ ${part.mode.toString(8)}`);
    else lines.push(`${part.path} ${part.mode.toString(8)} `);
  }
  return lines.sort();
}

async function scratch() {
  const dir = await mkdtemp(join(tmpdir(), "rolloutd-tree-"));
  return { dir, [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) };
}

async function stopsAtFirst(parts: AsyncIterable<TreePart>): Promise<void> {
  for await (const _ of parts) return;
}

export function treeTests(setup: Setup): void {
  test("a tree of the host's goes in and comes out again as it was", async () => {
    await using bundle = await setup();
    await using host = await scratch();
    const sandbox = await bundle.open();
    const from = join(host.dir, "from");
    await mkdir(join(from, "a/empty"), { recursive: true });
    const large = Buffer.alloc(3_000_000, "0123456789abcdef");
    await writeFile(join(from, "a/large"), large);
    await writeFile(join(from, "a/run me"), "#!/bin/sh\necho ran\n", { mode: 0o755 });
    await writeFile(join(from, "ünï\ncode"), "");
    await symlink("a/large", join(from, "link"));
    const sent = await sandbox.writeTree("into/here", { folder: from }, LIMITS);
    expect(sent).toEqual({ files: 3, bytes: 3_000_019, left: [] });
    expect(await shell(sandbox, "into/here/a/run\\ me; readlink into/here/link")).toBe(
      "ran\na/large\n",
    );
    const to = join(host.dir, "to");
    const saved = await sandbox.saveTree("into/here", to, LIMITS);
    expect(saved).toEqual({ files: 3, bytes: 3_000_019, left: [{ path: "link", why: "link" }] });
    expect((await readdir(to, { recursive: true })).sort()).toEqual(
      ["a", "a/empty", "a/large", "a/run me", "ünï\ncode"].sort(),
    );
    expect((await readFile(join(to, "a/large"))).equals(large)).toBe(true);
    expect((await stat(join(to, "a/run me"))).mode & 0o777).toBe(0o700);
  });

  test("texts go in as files, and one sandbox's tree into another", async () => {
    await using bundle = await setup();
    const [one, other] = [await bundle.open(), await bundle.open()];
    const files = {
      "tests/test_a.py": "assert 1\n",
      "tests/data/x.bin": new Uint8Array([1, 0, 2]),
    };
    await one.writeTree("repo", { files }, LIMITS);
    await shell(one, "chmod 750 repo/tests; ln -s ../nowhere repo/tests/link");
    await other.writeTree("copy", { parts: one.readTree("repo", LIMITS) }, LIMITS);
    expect(await listed(other.readTree("copy", LIMITS))).toEqual([
      "tests/ 750",
      "tests/data/ 755",
      "tests/data/x.bin 644 \x01\0\x02",
      "tests/link -> ../nowhere",
      "tests/test_a.py 644 assert 1\n",
    ]);
  });

  test("what is no file is named and left, and no link is followed on the way out", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    await shell(
      sandbox,
      `mkdir t secret; echo secret >secret/file; cd t
       ln -s ../secret folder; ln -s ../secret/file file; ln -s loop loop; ln ../secret/file hard
       mkfifo fifo; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('socket')"
       touch $'bad\\xff'; echo bytes >$'bad\\xff'; echo ok >ok`,
    );
    expect(await listed(sandbox.readTree("t", LIMITS))).toEqual([
      "bad\ufffd: name",
      "fifo: fifo",
      "file -> ../secret/file",
      "folder -> ../secret",
      "hard 644 secret\n",
      "loop -> loop",
      "ok 644 ok\n",
      "socket: socket",
    ]);
    expect(await failure(listed(sandbox.readTree("t/ok", LIMITS)))).toMatchObject({
      name: "FileError",
      code: "ENOTDIR",
      path: "t/ok",
    });
    expect(await failure(listed(sandbox.readTree("gone", LIMITS)))).toMatchObject({
      code: "ENOENT",
    });
  });

  test("on the way in links, files and fifos are replaced and never written through", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    await shell(
      sandbox,
      `mkdir -p t/stays secret; echo secret >secret/file; cd t
       ln -s ../secret folder; ln -s ../secret/file file; ln ../secret/file hard; mkfifo fifo; echo >was`,
    );
    const paths = ["folder/file", "file", "hard", "fifo", "was/in/the/way"];
    const files = Object.fromEntries(paths.map((path) => [path, "new"]));
    await sandbox.writeTree("t", { files }, LIMITS);
    expect(
      await shell(
        sandbox,
        "cat secret/*; ls secret; cat t/folder/file t/file t/hard t/was/in/the/way",
      ),
    ).toBe("secret\nfile\nnewnewnewnew");
    const inTheWay = sandbox.writeTree("t", { files: { stays: "x" } }, LIMITS);
    expect(await failure(inTheWay)).toMatchObject({ code: "EISDIR", path: "stays" });
  });

  test("a path that does not lead down is refused on the way in, before anything of it is written", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const bad = [
      "../up",
      "/etc/absolute",
      "a/../../b",
      "a//b",
      ".",
      "a/",
      "x\0y",
      "n".repeat(5000),
    ];
    for (const path of bad) {
      const error = await failure(sandbox.writeTree("t", { files: { [path]: "x" } }, LIMITS));
      expect([path, error.code]).toEqual([path, "EINVAL"]);
    }
    const long = sandbox.writeTree("t", { files: { ["n".repeat(300)]: "x" } }, LIMITS);
    expect(await failure(long)).toMatchObject({ code: "ENAMETOOLONG" });
    expect(await shell(sandbox, "ls -A t; ls -A | tr '\\n' ' '")).toBe("t ");
  });

  test("bytes, entries and depth are bounded, also for files that are mostly holes", async () => {
    await using bundle = await setup();
    await using host = await scratch();
    const sandbox = await bundle.open();
    await shell(sandbox, "mkdir -p holes many; truncate -s 900M holes/file; touch many/{1..300}");
    const before = process.memoryUsage.rss();
    const to = join(host.dir, "to");
    // So little that what passed and waits to be collected is no matter beside the file.
    const tight = { ...LIMITS, maxBytes: 10_000_000 };
    expect(await failure(sandbox.saveTree("holes", to, tight))).toMatchObject({
      code: "EFBIG",
      path: "holes",
    });
    expect(await readdir(host.dir)).toEqual([]);
    expect(process.memoryUsage.rss() - before).toBeLessThan(60_000_000);
    const few = { ...LIMITS, maxEntries: 299 };
    expect(await failure(listed(sandbox.readTree("many", few)))).toMatchObject({ code: "EFBIG" });
    const files = { a: "1234", b: "5678" };
    const small = sandbox.writeTree("in", { files }, { ...LIMITS, maxBytes: 7 });
    expect(await failure(small)).toMatchObject({ code: "EFBIG" });
    await shell(
      sandbox,
      "python3 -c \"import os\nfor i in range(600): os.mkdir('d'); os.chdir('d')\"",
    );
    expect(await failure(listed(sandbox.readTree("d", LIMITS)))).toMatchObject({
      code: "ENAMETOOLONG",
    });
  });

  test("who changes the tree meanwhile leads neither direction astray", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    await shell(sandbox, "mkdir -p t secret; echo canary >secret/file");
    const swap = `import os
while True:
    try:
        os.mkdir("t/d"); open("t/d/file", "w").write("open")
        os.rename("t/d", "t/old"); os.symlink("../secret", "t/d")
        os.unlink("t/d"); os.unlink("t/old/file"); os.rmdir("t/old")
    except OSError:
        os.system("rm -rf t/d t/old")`;
    const abort = new AbortController();
    const swapping = sandbox.exec(["python3", "-c", swap], { ...EXEC, signal: abort.signal });
    const files = { "d/file": "ours", "d/planted": "ours" };
    const codes = new Set<string | undefined>();
    for (let round = 0; round < 150; round++) {
      const lines = await listed(sandbox.readTree("t", LIMITS)).catch((error) => [`${error.code}`]);
      expect(lines.join("\n")).not.toContain("canary");
      await sandbox.writeTree("t", { files }, LIMITS).catch((error) => codes.add(error.code));
    }
    abort.abort(new Error("enough"));
    await failure(swapping);
    expect(await shell(sandbox, "cat secret/*; ls secret")).toBe("canary\nfile\n");
    // It may lose a race, and then says so.
    expect([...codes].filter((code) => !["ENOENT", "ELOOP", "EISDIR"].includes(`${code}`))).toEqual(
      [],
    );
  });

  test("an abort, or a reader that has seen enough, ends a transfer and nothing else", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    await shell(sandbox, "mkdir holes; truncate -s 900M holes/file");
    const unbounded = { maxBytes: 1e12, maxEntries: 1e6 };
    // More than there are streams for, so that each has to give its own back.
    for (let round = 0; round < 80; round++)
      await stopsAtFirst(sandbox.readTree("holes", unbounded));
    const abort = new AbortController();
    const reading = listed(sandbox.readTree("holes", unbounded, abort.signal));
    async function* endless(): AsyncGenerator<TreePart> {
      yield { kind: "file", path: "zeros", mode: 0o644 };
      for (let n = 0; ; n++) {
        if (n === 100) abort.abort(new Error("cancelled"));
        yield { kind: "data", bytes: Buffer.alloc(1000) };
      }
    }
    const source = { parts: endless() };
    const writing = sandbox.writeTree("in", source, unbounded, abort.signal);
    const ends = [failure(reading), failure(writing)];
    expect((await Promise.all(ends)).map(({ message }) => message)).toEqual([
      "cancelled",
      "cancelled",
    ]);
    expect(await shell(sandbox, "echo fine")).toBe("fine\n");
  });

  test("a command's whole output is in its log, in order, and its exit code is known", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const log = "logs/test.log";
    const script = `cd /usr; echo out; echo err >&2; ${"#".repeat(300_000)}
      for i in {1..200000}; do echo "line $i"; done; pwd; cat; exit 3`;
    const ended = { exitCode: 3, signal: null, timedOut: false, durationMs: expect.any(Number) };
    expect(await sandbox.run(script, { log, timeoutMs: 20_000 })).toEqual(ended);
    const lines = Buffer.from(await sandbox.readFile(log, 10_000_000))
      .toString()
      .split("\n");
    expect([lines.length, ...lines.slice(0, 2), ...lines.slice(-3)]).toEqual([
      200_004,
      "out",
      "err",
      "line 200000",
      "/usr",
      "",
    ]);
    const options = { log, cwd: "/usr", env: { X: "a b" }, timeoutMs: 20_000 };
    expect(await sandbox.run(["sh", "-c", 'echo "$X"; pwd'], options)).toMatchObject({
      exitCode: 0,
    });
    expect(Buffer.from(await sandbox.readFile(log, 100)).toString()).toBe("a b\n/usr\n");
    expect(await failure(sandbox.run(["no-such-program"], options))).toMatchObject({
      code: "image_invalid",
      message: expect.stringContaining("no-such-program"),
    });
  });

  test("what a command leaves in its group ends with it, in time or late", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const leave = "sleep 1000 & echo $! >pid; disown";
    const gone =
      "for i in {1..100}; do kill -0 $(cat pid) 2>/dev/null || exit 0; sleep 0.05; done; exit 1";
    await sandbox.exec(["bash", "-c", leave], EXEC);
    await shell(sandbox, gone);
    const options = { log: "log", timeoutMs: 20_000 };
    expect(await sandbox.run(leave, options)).toMatchObject({ exitCode: 0, timedOut: false });
    await shell(sandbox, gone);
    const late = sandbox.run(`${leave}; trap '' TERM; echo begun; sleep 1000`, {
      ...options,
      timeoutMs: 300,
    });
    expect(await late).toMatchObject({ exitCode: null, signal: 9, timedOut: true });
    await shell(sandbox, gone);
    expect(Buffer.from(await sandbox.readFile("log", 100)).toString()).toBe("begun\n");
  });
}

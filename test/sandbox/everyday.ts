import { expect, test } from "bun:test";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Setup } from "./conformance.ts";
import { EXEC } from "./setup.ts";

const RUN = { timeoutMs: 30_000, maxOutputBytes: 100_000 };

/** What programs do all day and a filter could get in the way of. */
export function everydayTests(setup: Setup): void {
  test("git makes commits, branches, worktrees, clones and packs", async () => {
    await using bundle = await setup();
    const script = `set -e; export HOME=/tmp/home; cd /tmp; git init -q -b main repo; cd repo
git config user.name n; git config user.email e@example.org
for i in 1 2 3; do seq $i 2000 >file; git add file; git commit -qm "change $i"; done
git worktree add -q ../tree -b other; git gc -q; git clone -q . ../clone; git -C ../clone log --oneline | wc -l
git -C ../tree rebase -q main; git diff HEAD~1 --stat | tail -n 1`;
    const sandbox = await bundle.open();
    const { stdout, stderr, exitCode } = await sandbox.exec(["bash", "-c", script], EXEC);
    expect({ stdout, stderr, exitCode }).toEqual({
      stdout: expect.stringMatching(/^3\n.*1 file changed/),
      stderr: "",
      exitCode: 0,
    });
  });

  test("folders of the image are moved and removed, as a checkout of another branch does", async () => {
    await using bundle = await setup();
    const image = await ownImage(join(bundle.dataDir, "image"));
    const script = `set -e; mv /data/old /data/moved; [ ! -e /data/old ]; [ "$(ls -A /data/moved)" = file ]
mkdir /data/old; [ -z "$(ls -A /data/old)" ]; rmdir /data/old; mv /data/moved /data/old
rm -rf /data/old; mkdir -p /data/old/new; mv /data/old/new /data/old/newer; [ "$(ls -A /data/old)" = newer ]
rm -rf /data; [ ! -e /data ]; echo done`;
    for (const writable of ["tmpfs", "overlay"] as const) {
      const sandbox = await bundle.open({ writable, image });
      const { stdout, stderr, exitCode } = await sandbox.exec(["bash", "-c", script], EXEC);
      expect({ stdout, stderr, exitCode }).toEqual({ stdout: "done\n", stderr: "", exitCode: 0 });
    }
    expect(await readFile(join(image, "data/old/file"), "utf8")).toBe("of the image");
  });

  test("Python's threads, processes, pools, shared memory, pipes and event loops work", async () => {
    await using bundle = await setup();
    const program = `import asyncio, multiprocessing, os, pty, select, socket, subprocess, tempfile, threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import shared_memory
def square(x): return x * x
async def child():
    process = await asyncio.create_subprocess_exec("echo", "child", stdout=subprocess.PIPE)
    return (await process.communicate())[0]
async def local():
    async def serve(reader, writer): writer.write(await reader.readline()); await writer.drain(); writer.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"localhost\\n")
    return await reader.readline()
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(2, mp_context=context) as pool: print(list(pool.map(square, range(4))))
    with ThreadPoolExecutor(4) as pool: print(list(pool.map(square, range(4))))
    lock, memory = multiprocessing.Lock(), shared_memory.SharedMemory(create=True, size=4096)
    with lock: memory.buf[0] = 7
    print(memory.buf[0]); memory.unlink()
    print(asyncio.run(child()), asyncio.run(local()), subprocess.check_output("echo shell", shell=True))
    main, other = pty.openpty(); os.write(other, b"tty"); print(os.read(main, 3))
    a, b = socket.socketpair(); a.send(b"pair"); print(b.recv(4), os.cpu_count() > 0)`;
    const sandbox = await bundle.open();
    await sandbox.writeFile("/tmp/program.py", program);
    const { stdout, stderr } = await sandbox.exec(["python3", "/tmp/program.py"], EXEC);
    const squares = "[0, 1, 4, 9]\n";
    const rest = "7\nb'child\\n' b'localhost\\n' b'shell\\n'\nb'tty'\nb'pair' True\n";
    expect({ stdout, stderr }).toEqual({ stdout: squares.repeat(4) + rest, stderr: "" });
  });

  test("bash has job control, process substitution, coprocesses and here-strings", async () => {
    await using bundle = await setup();
    const shell = await (await bundle.open()).shell();
    const script = `sleep 100 & jobs | cut -c1-12; kill %1; wait %1 2>/dev/null; echo $?
diff <(seq 3) <(seq 3) && echo same; coproc cat; echo through >&\${COPROC[1]}; read -r line <&\${COPROC[0]}; echo $line
tr a-z A-Z <<<here; (ulimit -n 64; ulimit -n); timeout 0.1 sleep 5; echo $?; xargs -P 4 -n 1 echo <<<"a b" | sort`;
    const { output } = await shell.run(script, RUN);
    for (const line of ["same", "through", "HERE", "64", "124", "a\nb"]) {
      expect(output).toContain(`${line}\n`);
    }
    const stopped = await shell.run("sleep 100 & kill -STOP %%; sleep 0.05; jobs; kill -9 %%", RUN);
    expect(stopped.output).toContain("Stopped");
  });

  test("a package is built and installed without a network", async () => {
    await using bundle = await setup();
    const script = `cd /tmp; mkdir -p package/thing; echo 'answer = 42' >package/thing/__init__.py
python3 -m venv --without-pip venv && cp -r package/thing venv/lib/python3*/site-packages/
venv/bin/python -c 'import thing; print(thing.answer)'; python3 -m zipfile -c thing.zip package && python3 -m zipfile -l thing.zip | wc -l`;
    const { stdout, stderr } = await (await bundle.open()).exec(["bash", "-c", script], EXEC);
    expect({ stdout, stderr }).toEqual({ stdout: expect.stringMatching(/^42\n\d/), stderr: "" });
  });
}

/** A small image of the host's own programs, whose files belong to whoever runs the test. */
async function ownImage(image: string): Promise<string> {
  for (const name of ["usr/bin", "bin", "data/old"]) {
    await mkdir(join(image, name), { recursive: true });
  }
  await writeFile(join(image, "data/old/file"), "of the image");
  const script = `set -e; for name in bash ls mv rm mkdir rmdir; do
program=$(command -v $name); cp -L $program ${image}/usr/bin/
ldd $program | grep -o '/[^ ]*' | while read -r library; do cp -L --parents $library ${image}/; done; done`;
  expect(await Bun.spawn(["bash", "-c", script]).exited).toBe(0);
  return image;
}

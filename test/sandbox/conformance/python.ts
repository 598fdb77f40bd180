import { expect, test } from "bun:test";
import type { Setup } from "../conformance.ts";
import { EXEC, failure } from "../setup.ts";

async function pythonOf(setup: Setup) {
  const bundle = await setup();
  const sandbox = await bundle.open();
  const python = await sandbox.python({ startTimeoutMs: 20_000 });
  return {
    sandbox,
    python,
    run: (code: string, options = EXEC) => python.run(code, options),
    [Symbol.asyncDispose]: () => bundle[Symbol.asyncDispose](),
  };
}

export function pythonTests(setup: Setup): void {
  test("a cell answers with what it printed and its last value", async () => {
    await using it = await pythonOf(setup);
    const code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7";
    expect(await it.run(code)).toEqual({
      output: "out\nerr\n42\n",
      ok: true,
      images: [],
      cwd: expect.stringMatching(/^\/.*home$/),
      python: expect.stringMatching(/^\/.*python/),
      timedOut: false,
      restarted: false,
      cutBytes: 0,
      durationMs: expect.any(Number),
    });
  });

  test("names are kept between cells, and nothing is shown for no value", async () => {
    await using it = await pythonOf(setup);
    await it.run("x = 20\ndef double(n):\n    return 2 * n");
    expect(await it.run("double(x)")).toMatchObject({ output: "40\n", ok: true });
    expect(await it.run("y = 1")).toMatchObject({ output: "", ok: true });
    expect(await it.run("")).toMatchObject({ output: "", ok: true });
  });

  test("an error comes as a traceback without colours, and names survive it", async () => {
    await using it = await pythonOf(setup);
    await it.run("x = 1");
    const result = await it.run("print('before')\nx / 0");
    expect(result).toMatchObject({ ok: false, restarted: false });
    expect(result.output).toStartWith("before\n");
    expect(result.output).toContain("ZeroDivisionError: division by zero");
    expect(result.output).not.toContain("\x1b");
    expect(await it.run("if:")).toMatchObject({ ok: false });
    expect(await it.run("x")).toMatchObject({ output: "1\n", ok: true });
  });

  test("what subprocesses print belongs to the cell", async () => {
    await using it = await pythonOf(setup);
    const code =
      "import os, subprocess\nprint(1)\nos.system('echo 2')\nsubprocess.run(['echo', '3'])\nprint(4)";
    expect((await it.run(code)).output).toBe("1\n2\n3\n4\n");
  });

  test("whoever prints, in whatever way, prints in turn, and to where the descriptor leads", async () => {
    await using it = await pythonOf(setup);
    const code = `import os, subprocess, sys, threading
print(1)
os.write(1, b'2\\n')
if os.fork() == 0:
    print(3)
    os._exit(0)
os.wait()
thread = threading.Thread(target=print, args=(4,))
thread.start()
thread.join()
subprocess.run(['echo', '5'], stdout=sys.stdout)
sys.stdout.buffer.write(b'6\\n')
sys.stdout.flush()
print(7, file=sys.stderr)
kept = os.dup(1)
os.dup2(os.open('hidden', os.O_CREAT | os.O_RDWR), 1)
print('into the file')
os.dup2(kept, 1)
print(8, open('hidden').read())`;
    expect((await it.run(code)).output).toBe("1\n2\n3\n4\n5\n6\n7\n8 into the file\n\n");
  });

  test("what was printed outlives the interpreter, and what comes late belongs to no cell", async () => {
    await using it = await pythonOf(setup);
    const ends = "import os, time; print('begun'); time.sleep(0.3); os._exit(3)";
    expect(await it.run(ends)).toMatchObject({ output: "begun\n", restarted: true });
    const later = `import threading, time
def show():
    time.sleep(0.1)
    print('late')
    done.set()
done = threading.Event()
threading.Thread(target=show).start()`;
    expect(await it.run(later)).toMatchObject({ output: "" });
    expect(await it.sandbox.exec(["sleep", "0.3"], EXEC)).toMatchObject({ exitCode: 0 });
    expect(await it.run("done.wait()")).toMatchObject({ output: "True\n" });
  });

  test("an interrupt of a cell that prints all the time leaves the session whole", async () => {
    await using it = await pythonOf(setup);
    const flood = "n = 0\nwhile True:\n    print(n)\n    n += 1";
    for (let round = 0; round < 5; round++) {
      const late = await it.run(flood, { ...EXEC, timeoutMs: 100, maxOutputBytes: 10_000_000 });
      expect(late).toMatchObject({ timedOut: true, restarted: false });
      const numbers = late.output.match(/^\d+$/gm)?.map(Number) ?? [];
      expect(numbers.length).toBeGreaterThan(10);
      expect(numbers.findIndex((number, i) => number !== i)).toBe(-1);
    }
    expect(await it.run("n > 10")).toMatchObject({ output: "True\n", restarted: false });
  });

  test("of much output both ends are kept and the cut is stated", async () => {
    await using it = await pythonOf(setup);
    const code = "print('first'); print('x' * 50_000_000); print('last')";
    const result = await it.run(code, { ...EXEC, maxOutputBytes: 1000 });
    expect(result.output).toStartWith("first\nxxx");
    expect(result.output).toEndWith("xxx\nlast\n");
    expect(result.output).toContain("\n[... 49999012 bytes cut ...]\n");
    expect(result).toMatchObject({ ok: true, cutBytes: 49_999_012 });
  });

  test("without IPython plain Python serves, which keeps names and shows values as well", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    // The user's own start-up file hides it.
    const home = (await sandbox.exec(["sh", "-c", "pwd"], EXEC)).stdout.trim();
    const site = `import site, os; p = site.getusersitepackages(); os.makedirs(p, exist_ok=True); open(p + '/usercustomize.py', 'w').write("import sys; sys.modules['IPython'] = None")`;
    await sandbox.exec(["python3", "-c", site], { ...EXEC, env: { HOME: home } });
    const python = await sandbox.python({ startTimeoutMs: 20_000 });
    expect(await python.run("'get_ipython' in globals()", EXEC)).toMatchObject({
      output: "False\n",
    });
    expect(await python.run("x = 20", EXEC)).toMatchObject({ output: "", ok: true });
    expect(await python.run("import os; os.chdir('/usr')\n2 * x", EXEC)).toMatchObject({
      output: "40\n",
      ok: true,
      cwd: "/usr",
    });
    expect((await python.run("x / 0", EXEC)).output).toContain("ZeroDivisionError");
  });

  test("standard input is at its end", async () => {
    await using it = await pythonOf(setup);
    const result = await it.run("input('name? ')");
    expect(result).toMatchObject({ ok: false, timedOut: false });
    expect(result.output).toContain("EOFError");
  });

  test("a late cell is interrupted and its names are kept", async () => {
    await using it = await pythonOf(setup);
    const code = "x = 1\nprint('begun', flush=True)\nimport time; time.sleep(100)";
    const late = await it.run(code, { ...EXEC, timeoutMs: 300 });
    expect(late).toMatchObject({ ok: false, timedOut: true, restarted: false });
    expect(late.output).toStartWith("begun\n");
    expect(await it.run("x")).toMatchObject({ output: "1\n", restarted: false });
    const child = "import os; os.system('sleep 100')";
    expect(await it.run(child, { ...EXEC, timeoutMs: 300 })).toMatchObject({ restarted: false });
  });

  test("a late cell that ignores the interrupt costs the session its names", async () => {
    await using it = await pythonOf(setup);
    const deaf = `x = 1
print('begun', flush=True)
import time
while True:
    try:
        time.sleep(1)
    except KeyboardInterrupt:
        pass`;
    const late = await it.run(deaf, { ...EXEC, timeoutMs: 300 });
    expect(late).toMatchObject({ output: "begun\n", ok: false, timedOut: true, restarted: true });
    expect(await it.run("'x' in globals()")).toMatchObject({ output: "False\n", restarted: false });
  });

  test("an interpreter that ends is replaced, and the loss is stated", async () => {
    await using it = await pythonOf(setup);
    const ended = await it.run("print('begun', flush=True)\nimport os; os._exit(3)");
    expect(ended).toMatchObject({ ok: false, timedOut: false, restarted: true });
    expect(await it.run("1 + 1")).toMatchObject({ output: "2\n", ok: true, restarted: false });
  });

  test("an interpreter that was killed between cells is replaced, and the loss is stated", async () => {
    await using it = await pythonOf(setup);
    await it.run("x = 1");
    await it.python.close();
    expect(await it.run("'x' in globals()")).toMatchObject({ output: "False\n", restarted: true });
  });

  test("a cell that tampers with its streams does not lose the session", async () => {
    await using it = await pythonOf(setup);
    await it.run("import sys; sys.stdout = None; sys.stderr.close()");
    expect(await it.run("1 + 1")).toMatchObject({ timedOut: false });
    await it.run("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)");
    expect(await it.run("2")).toMatchObject({ timedOut: false });
  });

  test("an interrupt that comes when no cell runs does no harm", async () => {
    await using it = await pythonOf(setup);
    const { output } = await it.run("import os; os.getpid()");
    await it.sandbox.exec(["sh", "-c", `kill -INT ${output.trim()}`], EXEC);
    expect(await it.run("1")).toMatchObject({ output: "1\n", restarted: false });
  });

  test("an abort while the session starts ends the wait, and the next call has it", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const abort = new AbortController();
    const opening = sandbox.python({ startTimeoutMs: 20_000, signal: abort.signal });
    setTimeout(() => abort.abort(new Error("cancelled")), 10);
    expect((await failure(opening)).message).toBe("cancelled");
    const python = await sandbox.python({ startTimeoutMs: 20_000 });
    expect(await python.run("1", EXEC)).toMatchObject({ output: "1\n", restarted: false });
  });

  test("a session found by its socket is the same one", async () => {
    await using it = await pythonOf(setup);
    await it.run("x = 'same'");
    const again = await it.sandbox.python({ startTimeoutMs: 20_000 });
    expect((await again.run("x", EXEC)).output).toBe("'same'\n");
  });

  test("an abort ends the wait at once, and the next cell gets a fresh session", async () => {
    await using it = await pythonOf(setup);
    const abort = new AbortController();
    const waiting = it.python.run("import time; time.sleep(100)", {
      ...EXEC,
      signal: abort.signal,
    });
    abort.abort(new Error("cancelled"));
    expect((await failure(waiting)).message).toBe("cancelled");
    expect(await it.run("1")).toMatchObject({ output: "1\n", ok: true, restarted: true });
  });
}

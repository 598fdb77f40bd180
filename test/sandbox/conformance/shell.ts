import { expect, test } from "bun:test";
import { descendantsOf } from "../../../src/lib/proc.ts";
import { attachSandbox } from "../../../src/sandbox/attach.ts";
import { waitFor } from "../../support/wait-for.ts";
import type { Setup } from "../conformance.ts";
import { failure } from "../setup.ts";

const RUN = { timeoutMs: 20_000, maxOutputBytes: 100_000 };
const SHORT = { ...RUN, timeoutMs: 300 };

/** One shell; `run` gives a command's output, `result` all of its answer. */
async function shellOf(setup: Setup) {
  const bundle = await setup();
  const sandbox = await bundle.open();
  const shell = await sandbox.shell();
  return {
    sandbox,
    shell,
    run: async (command: string) => (await shell.run(command, RUN)).output,
    result: (command: string, options = RUN) => shell.run(command, options),
    [Symbol.asyncDispose]: () => bundle[Symbol.asyncDispose](),
  };
}

export function shellTests(setup: Setup): void {
  test("a command's answer is its output alone, with exit code and folder", async () => {
    await using it = await shellOf(setup);
    const result = await it.result("cd /usr && echo hello && (exit 3)");
    expect(result).toEqual({
      output: "hello\n",
      exitCode: 3,
      cwd: "/usr",
      python: expect.any(String),
      timedOut: false,
      running: false,
      shellReplaced: false,
      cutBytes: 0,
      durationMs: expect.any(Number),
    });
  });

  test("folder, variables, functions, aliases and $? are kept between commands", async () => {
    await using it = await shellOf(setup);
    await it.run("cd /tmp; x=1; export Y=2; f() { echo \"f $1\"; }; alias hi='echo hi'; false");
    expect(await it.run("echo $? $x $Y; pwd; f a; hi; sh -c 'echo $Y'")).toBe(
      "1 1 2\n/tmp\nf a\nhi\n2\n",
    );
  });

  test("background jobs go on, are listed, and can be waited for", async () => {
    await using it = await shellOf(setup);
    await it.run("sleep 100 &");
    expect(await it.run("jobs")).toMatch(/^\[1\]\+ {2}Running +sleep 100 &\n$/);
    expect((await it.result("kill %1; wait %1 2>/dev/null")).exitCode).toBe(143);
  });

  test("what a background job prints between commands comes with the next", async () => {
    await using it = await shellOf(setup);
    await it.run("(echo late; touch printed) & disown");
    await waitFor(async () => (await it.sandbox.readFile("printed", 1)).length === 0, "it").catch(
      () => {},
    );
    expect(await it.run("echo now")).toContain("now\n");
  });

  test("lines, here-documents, quotes and loops go through as written", async () => {
    await using it = await shellOf(setup);
    const script = `cat <<'END' | tr a-z A-Z
  one "two" $three
END
for i in 1 2; do
  echo "line $i" # a comment
done`;
    expect(await it.run(script)).toBe('  ONE "TWO" $THREE\nline 1\nline 2\n');
    expect(await it.run("cat <<END\nunclosed")).toContain("unclosed\n");
    expect(await it.run("")).toBe("");
    expect(await it.run("# nothing")).toBe("");
  });

  test("an unfinished command is an error and not a wait for more", async () => {
    await using it = await shellOf(setup);
    const result = await it.result("if true; then echo 'x");
    expect(result.exitCode).not.toBe(0);
    expect(result.output).toContain("unexpected");
    expect(await it.run("echo fine")).toBe("fine\n");
  });

  test("a megabyte of command text runs", async () => {
    await using it = await shellOf(setup);
    const text = "y".repeat(1_000_000);
    expect(await it.run(`x='${text}'; echo \${#x}`)).toBe("1000000\n");
  });

  test("control characters in a command reach it and not the terminal", async () => {
    await using it = await shellOf(setup);
    const output = await it.run("printf %s '\x01\x03\x04\x15\x1a\x7f\t\\\x1b' | od -An -tx1");
    expect(output.trim()).toBe("01 03 04 15 1a 7f 09 5c 1b");
  });

  test("colours are dropped, overwritten lines show their end, bad UTF-8 is replaced", async () => {
    await using it = await shellOf(setup);
    expect(await it.run("printf '\\033[31mred\\033[0m 10%%\\r20%%\\nab\\xffcd\\n'")).toBe(
      "20% 10%\nab\ufffdcd\n",
    );
  });

  test("of a flood both ends are kept, and the next command is not touched by it", async () => {
    await using it = await shellOf(setup);
    const before = process.memoryUsage.rss();
    const result = await it.result("echo first; yes", { timeoutMs: 1000, maxOutputBytes: 10_000 });
    expect(result).toMatchObject({ timedOut: true, shellReplaced: false });
    expect(result.output).toStartWith("first\ny\ny\n");
    expect(result.output).toMatch(/\[\.\.\. \d+ bytes cut \.\.\.\]/);
    expect(result.output.length).toBeLessThan(11_000);
    expect(result.cutBytes).toBeGreaterThan(1_000_000);
    expect(process.memoryUsage.rss() - before).toBeLessThan(100_000_000);
    expect(await it.run("echo next")).toBe("next\n");
  });

  test("a late command is interrupted, and the shell keeps its state", async () => {
    await using it = await shellOf(setup);
    await it.run("x=kept; cd /tmp");
    const late = await it.result("echo begun; sleep 100; echo never", SHORT);
    expect(late).toMatchObject({ exitCode: null, timedOut: true, shellReplaced: false });
    expect(late.output.trim()).toBe("begun");
    expect(await it.run("echo $x; pwd")).toBe("kept\n/tmp\n");
    expect(await it.result("while :; do :; done", SHORT)).toMatchObject({ shellReplaced: false });
    expect(await it.result("cat", SHORT)).toMatchObject({ timedOut: true, shellReplaced: false });
    expect(await it.run("echo $x")).toBe("kept\n");
  });

  test("a late command that ignores the interrupt is killed, and the shell keeps its state", async () => {
    await using it = await shellOf(setup);
    await it.run("x=kept");
    const deaf = `bash -c 'trap "" INT; while :; do sleep 1; done'`;
    expect(await it.result(deaf, SHORT)).toMatchObject({ timedOut: true, shellReplaced: false });
    expect(await it.run("echo $x")).toBe("kept\n");
  });

  test("a command that is left running can be read, typed into, and told of its end", async () => {
    await using it = await shellOf(setup);
    const leave = { ...SHORT, late: "leave" } as const;
    const late = await it.shell.run("cd /usr; echo begun; read x; echo got $x", leave);
    expect(late).toMatchObject({
      output: "begun\n",
      exitCode: null,
      timedOut: true,
      running: true,
    });
    expect(it.shell.left).toBe("running");
    const quiet = await it.shell.resume("", { ...leave, timeoutMs: 20_000, quietMs: 100 });
    expect(quiet).toMatchObject({ output: "", timedOut: false, running: true });
    const ended = await it.shell.resume("it\n", { ...leave, timeoutMs: 20_000 });
    const end = { output: "got it\n", exitCode: 0, cwd: "/usr", running: false, timedOut: false };
    expect(ended).toMatchObject(end);
    expect(it.shell.left).toBeNull();
  });

  test("what a command left running prints after all comes in front of the next one's", async () => {
    await using it = await shellOf(setup);
    const waiting = "until [ -e go ]; do sleep 0.02; done; echo late";
    await it.shell.run(waiting, { ...SHORT, late: "leave" });
    await it.sandbox.writeFile("go", "");
    await waitFor(() => it.shell.left === "ended", "the end");
    expect(await it.run("echo next")).toBe("late\nnext\n");
  });

  test("a shell that ends with a command left running is replaced", async () => {
    await using it = await shellOf(setup);
    await it.shell.run("read x; exit 9", { ...SHORT, late: "leave" });
    const ended = await it.shell.resume("go\n", RUN);
    expect(ended).toMatchObject({ exitCode: 9, running: false, shellReplaced: true });
    expect(await it.run("echo alive")).toBe("alive\n");
  });

  test("the interpreter that `python` is comes with each answer, also when it changes", async () => {
    await using it = await shellOf(setup);
    const make = "mkdir -p bin; printf '#!/bin/sh\\necho fake\\n' >bin/python; chmod +x bin/python";
    const made = await it.result(`${make}; PATH=$PWD/bin:$PATH`);
    expect(made.python).toBe(`${made.cwd}/bin/python`);
    expect(await it.run("python")).toBe("fake\n");
    expect((await it.result("PATH=/nowhere")).python).toBe("");
  });

  test("the interpreter is looked for again wherever one could have come or gone", async () => {
    await using it = await shellOf(setup);
    const { python: usual, cwd } = await it.result(
      "mkdir a b 'c d'; make() { cp /bin/true \"$1\"; }",
    );
    const interpreter = async (command: string) => {
      const { python } = await it.result(command);
      return python.startsWith(`${cwd}/`) ? python.slice(cwd.length + 1) : python;
    };
    expect(await interpreter('PATH="$PWD/a:$PWD/c d:$PWD/b:$PATH"')).toBe(usual);
    expect(await interpreter("make b/python")).toBe("b/python");
    expect(await interpreter("make 'c d/python'")).toBe("c d/python");
    expect(await interpreter("make a/python; chmod -x a/python")).toBe("c d/python");
    expect(await interpreter("chmod +x a/python")).toBe("a/python");
    expect(await interpreter("rm a/python; mkdir a/python")).toBe("c d/python");
    expect(await interpreter("rm -r a/python c*/python")).toBe("b/python");
    expect(await interpreter("rm b/python")).toBe(usual);
    expect(await interpreter("PATH=:$PATH; mkdir e; cd e")).toBe(usual);
    expect(await interpreter("make python")).toBe("./python");
    expect(await interpreter("cd ..")).toBe(usual);
    expect(await interpreter("set -eu; trap 'echo trapped' ERR; PATH=")).toBe("");
  });

  test("to look the interpreter up does not tie the shell to it", async () => {
    await using it = await shellOf(setup);
    await it.run(`mkdir a b; PATH=$PWD/a:$PWD/b:$PATH
printf '#!/bin/sh\\necho old\\n' >b/python; chmod +x b/python`);
    expect(await it.run("sed s/old/new/ b/python >a/python; chmod +x a/python; python")).toBe(
      "new\n",
    );
  });

  test("a shell that ignores the interrupt itself is replaced", async () => {
    await using it = await shellOf(setup);
    await it.run("x=lost; cd /tmp");
    const deaf = await it.result("trap '' INT; while :; do :; done", SHORT);
    expect(deaf).toMatchObject({ exitCode: null, timedOut: true, shellReplaced: true });
    expect(await it.run('echo "[$x]"; pwd')).toBe("[]\n/tmp\n");
  });

  test("a shell that ends says how, and a fresh one takes its place", async () => {
    await using it = await shellOf(setup);
    const ends: [string, number][] = [
      ["x=1; exit 5", 5],
      ["exec ls /nowhere", 2],
      ["exec true", 0],
      ["kill -9 $$", 137],
      ["set -e; false", 1],
    ];
    for (const [command, exitCode] of ends) {
      const result = await it.result(command);
      expect(result).toMatchObject({ exitCode, shellReplaced: true, timedOut: false });
      expect(await it.run('echo "alive [$x]"')).toBe("alive []\n");
    }
  });

  test("no change of its own settings makes the shell lose its way", async () => {
    await using it = await shellOf(setup);
    const changes = [
      "PS1='$ '; PS2='> '; PROMPT_COMMAND='echo prompt'",
      "unset PROMPT_COMMAND PS1",
      "IFS=x; set -f -u; set -o noclobber",
      "stty raw echo; stty rows 5",
      "trap 'true' DEBUG; trap 'true' ERR",
      "shopt -s extglob nullglob; LC_ALL=C",
      "PATH=; cd /tmp",
      "exec 2>/dev/null",
      "unset PWD",
      "set -T; set -E",
    ];
    for (const change of changes) {
      const result = await it.result(change);
      expect([change, result.shellReplaced, result.exitCode]).toEqual([change, false, 0]);
      const after = await it.result("echo ok");
      expect([change, after.output.includes("ok\n"), after.timedOut]).toEqual([
        change,
        true,
        false,
      ]);
    }
    // Discards the rest of its line, so that only the prompt tells of the end.
    await it.run("PROMPT_COMMAND='echo prompt'; readonly r=1; trap 'echo trapped' ERR");
    expect(await it.result("r=2; echo never")).toMatchObject({ exitCode: 1, timedOut: false });
    expect(await it.result("false")).toMatchObject({ output: "trapped\n", exitCode: 1 });
    expect(await it.run("echo alone; trap - ERR; PROMPT_COMMAND=x")).toBe("alone\n");
    expect(await it.result("sleep 100", SHORT)).toMatchObject({ shellReplaced: false });
    await it.run("exec >/dev/null");
    expect(await it.result("echo swallowed; false")).toMatchObject({ output: "", exitCode: 1 });
    expect(await it.result("echo back >/dev/tty")).toMatchObject({ output: "back\n" });
  });

  test("a shell that traces what it runs shows nothing of ours", async () => {
    await using it = await shellOf(setup);
    expect(await it.run("set -x; echo a")).toBe("++ echo a\na\n");
    expect(await it.run("echo b; false")).toBe(
      "+ eval -- 'echo b; false'\n++ echo b\nb\n++ false\n",
    );
    expect(await it.run(": $?")).toBe("+ eval -- ': $?'\n++ : 1\n");
    expect(await it.run(": two\n: lines")).not.toContain("rollout_nonce");
    expect(await it.run("set +x; echo c")).toEndWith("++ set +x\nc\n");
    expect(await it.run("echo d")).toBe("d\n");
  });

  test("a program can't fake the end of a command", async () => {
    await using it = await shellOf(setup);
    const forged =
      "printf '\\033]777;%s;0\\0/\\0\\0\\a' 00000000-0000-0000-0000-000000000000; sleep 0.1; echo end";
    expect(await it.result(`bash -c ${JSON.stringify(forged)}; (exit 3)`)).toMatchObject({
      output: "end\n",
      exitCode: 3,
    });
    expect(await it.run("env | grep -ic rollout_nonce")).toBe("0\n");
  });

  test("a folder of any name is reported whole", async () => {
    await using it = await shellOf(setup);
    const result = await it.result("mkdir -p $'/tmp/a;b\\a\\nc ü'; cd $'/tmp/a;b\\a\\nc ü'");
    expect(result.cwd).toBe("/tmp/a;b\x07\nc ü");
    await it.run("cd /; rmdir $'/tmp/a;b\\a\\nc ü'");
  });

  test("an abort ends the wait at once, and the next command gets a fresh shell", async () => {
    await using it = await shellOf(setup);
    const abort = new AbortController();
    const waiting = it.shell.run("x=1; sleep 100", { ...RUN, signal: abort.signal });
    abort.abort(new Error("cancelled"));
    expect((await failure(waiting)).message).toBe("cancelled");
    expect(await it.result('echo "[$x]"')).toMatchObject({ output: "[]\n", shellReplaced: true });
    const flood = new AbortController();
    const flooding = it.shell.run("yes", { ...RUN, signal: flood.signal });
    setTimeout(() => flood.abort(new Error("cancelled")), 50);
    await failure(flooding);
    expect(await it.run("echo clean")).toBe("clean\n");
    const before = it.shell.run("true", { ...RUN, signal: AbortSignal.abort(new Error("before")) });
    expect((await failure(before)).message).toBe("before");
  });

  test("an abort while a shell opens leaves none behind", async () => {
    await using it = await shellOf(setup);
    const abort = new AbortController();
    const opening = it.sandbox.shell(abort.signal);
    abort.abort(new Error("cancelled"));
    expect((await failure(opening)).message).toBe("cancelled");
    const { holderPid } = it.sandbox.handle;
    await waitFor(() => descendantsOf(holderPid).length === 1, "only the first shell to be left");
  });

  test("a later thread opens a shell of its own, in the same files", async () => {
    await using it = await shellOf(setup);
    const left = await it.sandbox.shell();
    await left.run("x=rollout; cd /tmp; echo kept >file; alias ls=false; sleep 1000", {
      ...SHORT,
      late: "leave",
    });
    await it.sandbox.detach();
    const evaluation = await attachSandbox(it.sandbox.handle);
    const shell = await evaluation.shell();
    const { output, cwd } = await shell.run('echo "[$x]"; cat /tmp/file; ls /tmp/file', RUN);
    expect(output).toBe("[]\nkept\n/tmp/file\n");
    expect(cwd).not.toBe("/tmp");
    const { holderPid } = it.sandbox.handle;
    await waitFor(() => descendantsOf(holderPid).length === 1, "the rollout's shells to be gone");
  });

  test("two shells of one sandbox do not touch each other", async () => {
    await using it = await shellOf(setup);
    const other = await it.sandbox.shell();
    await other.run("x=other; cd /", RUN);
    const both = [it.result("sleep 0.2; echo a"), other.run("echo b", RUN)];
    expect((await Promise.all(both)).map(({ output }) => output)).toEqual(["a\n", "b\n"]);
    expect(await it.run('echo "[$x]"')).toBe("[]\n");
    await other.close();
    expect(await it.run("echo still")).toBe("still\n");
  });

  test("programs see a terminal with the modes they expect, after every command", async () => {
    await using it = await shellOf(setup);
    expect(await it.run("test -t 0 && test -t 1 && stty size")).toBe("50 200\n");
    expect(await it.result("stty raw; read -t 0.1 x")).toMatchObject({ shellReplaced: false });
    expect(await it.run("stty -a | grep -o -e ' -\\?icanon' -e ' -\\?isig' -e ' -\\?echo '")).toBe(
      " icanon\n -echo \n",
    );
  });
}

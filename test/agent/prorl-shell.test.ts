import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { ToolLimits } from "../../src/agent/tool.ts";
import { waitFor } from "../support/wait-for.ts";
import { DRIVERS, sandboxed } from "./sandboxed.ts";

setDefaultTimeout(60_000);

const HINT =
  "You may wait longer to see additional output by sending empty command '', send other commands to interact with the current process, or send keys to interrupt/kill the command.]";
const PREVIOUS = "[Below is the output of the previous command.]\n";

/** What ProRL Agent's own tests ask of a shell, with what its clients' prompts rely on, on real sandboxes. */
describe.each(DRIVERS)("%s", (driver) => {
  async function shell(limits: Partial<ToolLimits> = {}) {
    const tool = await sandboxed(driver, "execute_bash", limits);
    return {
      ...tool,
      run: (command: string, timeout?: number) =>
        tool.call({ command, ...(timeout === undefined ? {} : { timeout }) }),
      send: (command: string) => tool.call({ command, is_input: "true" }),
    };
  }

  test("a server runs until C-c, and says how it ended", async () => {
    await using it = await shell();
    const server = "python3 -u -m http.server 8088 --bind 127.0.0.1";
    const started = await it.run(server, 1);
    expect(started).toContain("Serving HTTP on");
    expect(started).toContain(`\n[The command timed out after 1.0 seconds. ${HINT}`);
    expect(started).not.toContain("exit code");
    const stopped = await it.send("C-c");
    expect(stopped).toContain("Keyboard interrupt received, exiting.");
    expect(stopped).toContain("\n[The command completed with exit code 0. CTRL+C was sent.]");
    expect(stopped).toEndWith("\n[Command finished with exit code 0]");
    const next = await it.run("echo next && ls /nowhere 2>/dev/null || true");
    expect(next).toStartWith("next\n[The command completed with exit code 0.]\n");
  });

  test("a server in the background leaves the shell free", async () => {
    await using it = await shell();
    const at = driver === "host" ? 18_088 : 8088;
    const started = await it.run(`python3 -u -m http.server ${at} --bind 127.0.0.1 > log 2>&1 &`);
    expect(started).toContain("[The command completed with exit code 0.]");
    const get = `python3 -c "import urllib.request as r; print(r.urlopen('http://127.0.0.1:${at}').read().decode())"`;
    await waitFor(async () => (await it.run(get)).includes("Directory listing for"), "the server");
    await it.run("kill %1");
  });

  test("a quoted newline is part of one command, without a prompt in its output", async () => {
    await using it = await shell();
    const said = await it.run('echo -e "hello\nworld"');
    expect(said).toStartWith("hello\nworld\n[The command completed with exit code 0.]\n");
    expect(said).not.toContain(">");
  });

  test("loops, functions, here-documents and continued lines are one command", async () => {
    await using it = await shell();
    const loop = "for i in 1 2 3; do\n  echo $i\ndone";
    expect(await it.run(loop)).toStartWith("1\n2\n3\n[The command completed");
    const document = "cat > notes.txt <<'END'\nit's \"quoted\"\n\n# no comment\n$HOME\nEND";
    expect(await it.run(document)).toStartWith("[The command completed with exit code 0.]");
    expect(await it.run("cat notes.txt")).toStartWith(
      'it\'s "quoted"\n\n# no comment\n$HOME\n[The',
    );
    expect(await it.run("greet() {\n  echo hi $1\n}")).toContain("exit code 0");
    expect(await it.run("greet \\\n  you &&\n  greet me")).toStartWith("hi you\nhi me\n[The");
    expect(await it.run("# a comment\necho one  # it's another\n\n# more")).toStartWith(
      "one\n[The",
    );
  });

  test("several commands at once are refused, and each alone works", async () => {
    await using it = await shell();
    const commands = [
      "ls -l",
      'echo -e "hello\nworld"',
      'echo -e "hello it\'s me"',
      "echo \\\n  -e 'hello' \\\n  -v",
      "echo -e 'hello\\nworld\\nare\\nyou\\nthere?'",
      "echo -e 'hello\nworld\nare\nyou\n\nthere?'",
      "echo -e 'hello\nworld \"\n'",
    ];
    const list = commands.map((command, index) => `(${index + 1}) ${command}`).join("\n");
    expect(await it.run(commands.join("\n"))).toBe(
      "ERROR: Cannot execute multiple commands at once.\n" +
        "Please run each command separately OR chain them into a single command via && or ;\n" +
        `Provided commands:\n${list}`,
    );
    for (const command of commands) {
      expect(await it.run(command)).toContain("[The command completed with exit code 0.]");
    }
    const mixed = await it.run(
      "for i in 1 2; do\n  echo $i\ndone\ncat <<E\nx\nE\nif true\nthen ls\nfi",
    );
    expect(mixed).toContain(
      "(1) for i in 1 2; do\n  echo $i\ndone\n(2) cat <<E\nx\nE\n(3) if true",
    );
  });

  test("what does not parse is run, so that bash says why", async () => {
    await using it = await shell();
    expect(await it.run("echo one\necho two\necho 'three\nfi (")).toContain("unexpected EOF");
    expect(await it.run("echo fine")).toStartWith("fine\n");
  });

  test("a command that waits for input gets it", async () => {
    await using it = await shell({ quietMs: 1000 });
    const asking = await it.run('read -p "Enter name: " name && echo "Hello $name"');
    expect(asking).toStartWith("Enter name: \n[The command has no new output after 1 seconds. You");
    const answered = await it.send("John");
    expect(answered).toStartWith("Hello John\n[The command completed with exit code 0.]\n");
    expect(await it.run("echo $name")).toStartWith("John\n");
  });

  test("output that keeps coming is not silence", async () => {
    await using it = await shell({ quietMs: 700 });
    const said = await it.run("for i in 1 2 3 4; do echo $i; sleep 0.4; done");
    expect(said).toStartWith("1\n2\n3\n4\n[The command completed with exit code 0.]");
  });

  test("an empty command reads on, and only what is new", async () => {
    await using it = await shell();
    const first = await it.run(
      "echo one; read x; echo two; read x; echo three; exit_with() { return 3; }; exit_with",
      0.5,
    );
    expect(first).toStartWith("one\n[The command timed out after 0.5 seconds.");
    expect(await it.call({ command: "go", is_input: true, timeout: 0.5 })).toStartWith(
      "two\n[Command is still running. Send empty command '' to get more output, or send C-c/C-z to interrupt.]\n",
    );
    expect(await it.call({ command: "", timeout: 0.1 })).toStartWith(
      `${PREVIOUS}[The command timed out after 0.1 seconds. ${HINT}`,
    );
    const last = await it.send("go");
    expect(last).toStartWith("three\n[The command completed with exit code 3.]\n");
    expect(last).toEndWith("[Command finished with exit code 3]");
  });

  test("the end of a command that was left running is told to whoever asks, once", async () => {
    await using it = await shell();
    await it.run("until [ -e go ]; do sleep 0.02; done; echo seen", 0.1);
    await it.sandbox.writeFile("go", "");
    expect(await it.run("", 10)).toStartWith(
      `${PREVIOUS}seen\n[The command completed with exit code 0.]\n`,
    );
    expect(await it.run("")).toBe("ERROR: No previous running command to retrieve logs from.");
  });

  test("nothing runs, so that nothing can be read or sent", async () => {
    await using it = await shell();
    expect(await it.run("")).toBe("ERROR: No previous running command to retrieve logs from.");
    expect(await it.send("y")).toBe("ERROR: No previous running command to interact with.");
    expect(await it.send("C-c")).toBe("ERROR: No previous running command to interact with.");
    expect(await it.call({ command: "ls", is_input: "perhaps" })).toStartWith(
      "ERROR: the argument",
    );
  });

  test("a second command meanwhile is refused, with what the first printed", async () => {
    await using it = await shell();
    await it.run("echo one; sleep 0.3; echo two; read x", 0.1);
    let refused = "";
    let seen = "";
    await waitFor(async () => {
      refused = await it.run("pwd");
      seen += refused;
      return seen.includes("two\n");
    }, "the second line");
    expect(refused).toStartWith(
      `${PREVIOUS}two\n[Your command "pwd" is NOT executed. The previous`,
    );
    expect(refused).toContain(
      "You CANNOT send new commands until the previous command is completed.",
    );
    expect(await it.send("C-c")).toContain("exit code 130. CTRL+C was sent.]");
    expect(await it.run("pwd")).toContain("[The command completed with exit code 0.]");
  });

  test("C-d ends input, C-z stops, and the stopped job can be taken up", async () => {
    await using it = await shell();
    await it.run("cat > typed; echo ended", 0.2);
    await it.call({ command: "line", is_input: true, timeout: 0.1 });
    expect(await it.send("C-d")).toStartWith(
      "ended\n[The command completed with exit code 0. CTRL+D was sent.]",
    );
    expect(await it.run("cat typed")).toStartWith("line\n");
    await it.run("sleep 100", 0.2);
    expect(await it.send("C-z")).toContain("exit code 148. CTRL+Z was sent.]");
    expect(await it.run("jobs")).toMatch(/Stopped +(eval .*)?sleep 100/);
    expect(await it.run("kill %1; bg; wait; true")).toContain("exit code 0");
  });

  test("what ignores the interrupt keeps the shell busy, and the answer says so", async () => {
    await using it = await shell();
    await it.run(`bash -c 'trap "echo no" INT; while :; do sleep 0.1; done'`, 0.3);
    const deaf = await it.call({ command: "C-c", is_input: "true", timeout: 0.5 });
    expect(deaf).toContain("[The interrupt signal C-c was sent but command may still be running.]");
    expect(await it.run("ls")).toContain('[Your command "ls" is NOT executed.');
    expect(await it.run("", 0.1)).toContain("[The command timed out after 0.1 seconds.");
  });

  test("exit codes are the command's own", async () => {
    await using it = await shell();
    const unknown = await it.run("nonexistent_command");
    expect(unknown).toContain("nonexistent_command: command not found");
    expect(unknown).toContain("[The command completed with exit code 127.]");
    expect(await it.run("(exit 42)")).toContain("[Command finished with exit code 42]");
  });

  test("the footers say where the shell is and which Python it would run", async () => {
    await using it = await shell();
    const [, how, where, ...rest] = (await it.run("mkdir -p d && cd d && pwd")).split("\n");
    expect(how).toBe("[The command completed with exit code 0.]");
    expect(where).toMatch(/^\[Current working directory: \/.*\/d\]$/);
    expect(rest.at(-1)).toBe("[Command finished with exit code 0]");
    const venv = 'mkdir -p bin && printf "#!/bin/sh\\n" > bin/python && chmod +x bin/python';
    const found = await it.run(`${venv} && PATH=$PWD/bin:$PATH`);
    expect(found).toMatch(/\n\[Python interpreter: \/.*\/d\/bin\/python\]\n/);
    expect(await it.run("rm bin/python")).not.toContain("/d/bin/python]");
  });

  test("git and find work", async () => {
    await using it = await shell();
    const identity = "git config user.email a@b.c && git config user.name A";
    await it.run(`mkdir repo && cd repo && git init -q . && ${identity}`);
    await it.run("echo one > 'a b.txt' && git add -A");
    expect(await it.run("git --no-pager diff --cached")).toContain("+one");
    expect(await it.run("git commit -q -m first && git --no-pager log --oneline")).toContain(
      " first",
    );
    expect(await it.run("find . -name '*.txt' -exec wc -l {} \\;")).toStartWith("1 ./a b.txt\n");
  });

  test("of long output the two ends and a window at four fifths are shown", async () => {
    await using it = await shell();
    const five = await it.run('for i in $(seq 1 5000); do echo "Line $i"; done');
    expect(five).toContain("Line 1\n");
    expect(five).toContain("\nLine 5000\n");
    const fifty = await it.run('for i in $(seq 1 50000); do echo "Line $i"; done');
    expect(fifty).toStartWith("Previous command outputs are truncated\nLine 1\n");
    expect(fifty).toContain("\nLine 40000\n");
    expect(fifty).toContain("\nLine 50000\n[The command completed with exit code 0.]");
    expect(fifty).toMatch(/\n\[\.\.\. \d+ characters cut \.\.\.\]\n/);
    expect(fifty.length).toBeLessThan(10_800);
  });

  test("a shell that ended is replaced, and the answer says so", async () => {
    await using it = await shell();
    const replaced =
      "[The shell ended and was replaced: its variables and background jobs are lost.]";
    expect(await it.run("x=1; exit 5")).toContain(
      `[The command completed with exit code 5.]\n${replaced}\n`,
    );
    await it.run("sleep 0.1; exec sh -c 'read x; exit 7'", 0.3);
    expect(await it.send("go")).toContain(`exit code 7.]\n${replaced}`);
    expect(await it.run("echo alive")).toStartWith("alive\n");
  });
});

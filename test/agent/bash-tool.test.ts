import { expect, test } from "bun:test";
import { createTools } from "../../src/agent/tools.ts";
import type { CommandResult, Shell } from "../../src/sandbox/sandbox.ts";
import { FakeSandbox } from "../support/fake-sandbox.ts";

const LIMITS = { toolTimeoutMs: 30_000, maxOutputBytes: 1000 };

type Setup = { left?: Shell["left"]; result?: Partial<CommandResult> };

function setup({ left = null, result = {} }: Setup = {}) {
  const sandbox = new FakeSandbox();
  sandbox.left = left;
  sandbox.onCommand = async () => result;
  const { signal } = new AbortController();
  const [tool] = createTools(["execute_bash"], { sandbox, limits: LIMITS, signal });
  if (!tool) throw new Error("no tool was made");
  return { tool, sandbox, signal };
}

async function answer(result: Partial<CommandResult>, args = {}) {
  return await setup({ result }).tool.run({ command: "ls", ...args });
}

test("answers with the same exit code count as the same, unless the command runs on", async () => {
  const outcomes = await Promise.all(
    [
      { output: "at 10:01", exitCode: 1 },
      { output: "at 10:02", exitCode: 1 },
      { output: "", exitCode: null, running: true, timedOut: true },
    ].map(async (result) => (await answer(result)).outcome),
  );
  expect(outcomes).toEqual(["exit code 1", "exit code 1", undefined]);
});

test("the answer has the output, how the command ended, where the shell is and its interpreter", async () => {
  const notes = [
    "a",
    "b",
    "[The command completed with exit code 2.]",
    "[Current working directory: /work]",
    "[Python interpreter: /usr/bin/python]",
    "[Command finished with exit code 2]",
  ];
  const result = { output: "a\nb\n", exitCode: 2, python: "/usr/bin/python" };
  expect(await answer(result)).toEqual({
    text: notes.join("\n"),
    ok: true,
    outcome: "exit code 2",
  });
});

test("of a silent command only the notes are shown, and a place that is not known is left out", async () => {
  const notes = [
    "[The command completed with exit code 0.]",
    "[Command finished with exit code 0]",
  ];
  expect(await answer({ output: "", cwd: "" })).toEqual({
    text: notes.join("\n"),
    ok: true,
    outcome: "exit code 0",
  });
});

test("a command that is late is said to go on, and has no exit code", async () => {
  const late = { output: "slow", exitCode: null, timedOut: true, running: true };
  const { text, ok } = await answer(late, { timeout: 2.5 });
  expect(text).toStartWith("slow\n[The command timed out after 2.5 seconds. You may wait longer");
  expect(text).toEndWith("]\n[Current working directory: /work]");
  expect(ok).toBe(false);
});

test("a shell that was replaced is said to be", async () => {
  const notes = [
    "[The command completed with exit code 137.]",
    "[The shell ended and was replaced: its variables and background jobs are lost.]",
    "[Current working directory: /work]",
    "[Command finished with exit code 137]",
  ];
  const text = notes.join("\n");
  expect(await answer({ exitCode: 137, shellReplaced: true })).toEqual({
    text,
    ok: true,
    outcome: "exit code 137",
  });
});

test("input that comes after the end is not sent, and the answer says so", async () => {
  const { tool, sandbox } = setup({ left: "ended", result: { output: "done" } });
  const { text } = await tool.run({ command: "yes", is_input: "true" });
  expect(sandbox.commands.map(({ text }) => text)).toEqual([""]);
  expect(text).toStartWith("[Below is the output of the previous command.]\ndone\n[The command");
  expect(text).toContain('\n[Your input "yes" was NOT sent: the command had completed before.]\n');
});

test("a command after one that has ended meanwhile is run", async () => {
  const { tool, sandbox } = setup({ left: "ended" });
  expect((await tool.run({ command: " ls " })).ok).toBe(true);
  expect(sandbox.commands.map(({ text }) => text)).toEqual(["ls"]);
});

test("the model may set a time limit in seconds, up to the tool's own", async () => {
  const { tool, sandbox, signal } = setup();
  for (const timeout of [1.5, 31, 0, -1, "soon", true, null, undefined]) {
    await tool.run({ command: "ls", timeout });
  }
  expect(sandbox.commands[0]).toMatchObject({ text: "ls", timeoutMs: 1500, signal });
  expect(sandbox.commands.map(({ timeoutMs }) => timeoutMs)).toEqual([
    1500,
    ...Array(7).fill(30_000),
  ]);
});

test("one shell is opened for all commands, and none before the first", async () => {
  const { tool, sandbox } = setup();
  expect(sandbox.shells).toBe(0);
  await tool.run({ command: "a" });
  await tool.run({ command: "b" });
  expect(sandbox.shells).toBe(1);
});

test("output that was cut is said to be", async () => {
  const { text } = await answer({ output: "x".repeat(5000) });
  expect(text).toStartWith("Previous command outputs are truncated\nxxx");
  expect(text).toMatch(/x\n\[\.\.\. \d+ characters cut \.\.\.\]\nx/);
});

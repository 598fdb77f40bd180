import { describe, expect, test } from "bun:test";
import type { ToolName } from "../../src/agent/tool.ts";
import { createTools } from "../../src/agent/tools.ts";
import type { CellResult } from "../../src/sandbox/sandbox.ts";
import { failureOf } from "../support/failure.ts";
import { FakeSandbox } from "../support/fake-sandbox.ts";

const LIMITS = { toolTimeoutMs: 30_000, maxOutputBytes: 1000 };

function setup(name: ToolName, sandbox: FakeSandbox | null = new FakeSandbox()) {
  const { signal } = new AbortController();
  const [tool] = createTools([name], { sandbox, limits: LIMITS, signal });
  if (!tool) throw new Error("no tool was made");
  return { tool, sandbox: sandbox as FakeSandbox, signal };
}

async function ipython(result: Partial<CellResult>) {
  const { tool, sandbox } = setup("execute_ipython_cell");
  sandbox.onCell = async () => result;
  return await tool.run({ code: "1" });
}

describe("execute_ipython_cell", () => {
  test("shows what a notebook would", async () => {
    expect(await ipython({ output: "4\n" })).toEqual({ text: "4", ok: true });
  });

  test("says so where a cell succeeded and printed nothing", async () => {
    const text = "[Code executed successfully with no output]";
    expect(await ipython({ output: "" })).toEqual({ text, ok: true });
  });

  test("does not say so where a silent cell was stopped", async () => {
    const text = "[Execution timed out (30 seconds).]";
    expect(await ipython({ output: "", timedOut: true })).toEqual({
      text,
      ok: false,
      timedOut: true,
    });
  });

  test("a traceback is no success", async () => {
    const output = "NameError: name 'x' is not defined";
    expect(await ipython({ output, ok: false })).toEqual({ text: output, ok: false });
  });

  test("says after how long a cell was stopped, and that the variables are lost", async () => {
    expect(await ipython({ output: "1\n", timedOut: true, restarted: true })).toEqual({
      text: "1\n[Execution timed out (30 seconds).]\n[The interpreter was restarted: its variables are lost.]",
      ok: false,
      timedOut: true,
    });
  });

  test("shows what it knows of pictures, the folder and the interpreter, in this order", async () => {
    const images = ["data:image/png;base64,cG5n"];
    const cell = { output: "1\n", images, cwd: "/work", python: "/usr/bin/python3" };
    const lines = [
      "1",
      "![image](data:image/png;base64, ...) already displayed to user",
      "[Jupyter current working directory: /work]",
      "[Jupyter Python interpreter: /usr/bin/python3]",
    ];
    expect(await ipython(cell)).toEqual({ text: lines.join("\n"), ok: true });
  });

  test("runs its cells in one session, with the limits and the signal of the rollout", async () => {
    const { tool, sandbox, signal } = setup("execute_ipython_cell");
    await tool.run({ code: "x = 1" });
    await tool.run({ code: "x" });
    const options = { timeoutMs: 30_000, maxOutputBytes: 1000, signal };
    expect(sandbox.cells).toEqual([
      { text: "x = 1", ...options },
      { text: "x", ...options },
    ]);
    expect(sandbox.pythons).toBe(1);
  });
});

describe("think and finish", () => {
  test("a thought is acknowledged", async () => {
    const { tool } = setup("think", null);
    expect(await tool.run({ thought: "hm" })).toEqual({
      text: "Your thought has been logged.",
      ok: true,
    });
  });

  test("the message of finish is the final one", async () => {
    const { tool } = setup("finish", null);
    expect(await tool.run({ message: "4" })).toEqual({ text: "", ok: true, finish: "4" });
  });
});

describe("an argument that is missing or no text is told to the model, and nothing is run", () => {
  const cases: [tool: ToolName, argument: string][] = [
    ["execute_bash", "command"],
    ["execute_ipython_cell", "code"],
    ["think", "thought"],
    ["finish", "message"],
  ];
  test.each(cases)("%s: %s", async (name, argument) => {
    const { tool, sandbox } = setup(name);
    const told = `ERROR: the argument "${argument}" must be a string, but`;
    expect(await tool.run({})).toEqual({ text: `${told} it is missing.`, ok: false });
    expect(await tool.run({ [argument]: 5 })).toEqual({
      text: expect.stringContaining(told),
      ok: false,
    });
    expect([sandbox.commands, sandbox.cells]).toEqual([[], []]);
  });
});

test("a tool that needs a sandbox fails the rollout of a task kind without one", async () => {
  const refused = {
    code: "instance_invalid",
    boundary: "task",
    retryable: false,
  } as const;
  const noBash = await failureOf(() => setup("execute_bash", null).tool.run({ command: "ls" }));
  const noCell = await failureOf(() => setup("execute_ipython_cell", null).tool.run({ code: "1" }));
  expect([noBash, noCell]).toEqual([
    { ...refused, message: "execute_bash needs a sandbox, which this task kind lacks" },
    { ...refused, message: "execute_ipython_cell needs a sandbox, which this task kind lacks" },
  ]);
});

test("tools come in the order in which they are asked for, each with a schema of its own", () => {
  const names: ToolName[] = ["finish", "execute_bash", "think", "execute_ipython_cell"];
  const context = { sandbox: null, limits: LIMITS, signal: new AbortController().signal };
  const schemas = createTools(names, context).map((tool) => tool.schema.function);
  expect(schemas.map(({ name, parameters }) => [name, parameters.required])).toEqual([
    ["finish", ["message"]],
    ["execute_bash", ["command"]],
    ["think", ["thought"]],
    ["execute_ipython_cell", ["code"]],
  ]);
});

test("a cell that failed without a word is not called a success", async () => {
  const { tool, sandbox } = setup("execute_ipython_cell");
  sandbox.onCell = async () => ({ output: "", ok: false });
  expect((await tool.run({ code: "x" })).text).not.toContain("successfully");
});

test("a time limit that is no number is not taken for one", async () => {
  const { tool, sandbox } = setup("execute_bash");
  await tool.run({ command: "x", timeout: true });
  expect(sandbox.commands[0]?.timeoutMs).toBe(LIMITS.toolTimeoutMs);
});

import { describe, expect, test } from "bun:test";
import { loadTaskModules } from "../../src/tasks/load-modules.ts";
import { taskKindByName } from "../../src/tasks/registry.ts";
import { failureOf } from "../support/failure.ts";
import { evalContext, runContext, TASK_SETTINGS } from "../support/task-context.ts";
import { tempDir } from "../support/temp-dir.ts";

const WHOLE: Record<string, string> = {
  name: '"NAME"',
  dataSources: '["NAME"]',
  needsBackend: "false",
  tools: "[]",
  parse: "() => ({})",
  sandboxes: '() => ({ agent: false, evaluation: "none", image: null })',
  init: "async () => {}",
  run: 'async () => ({ stop_reason: "done", final_message: null, turns: 0 })',
  evaluate: 'async () => ({ reward: 1, rule: "r", reason: "." })',
};

let kinds = 0;

/** A module with one kind, whose line 3 on has one member each; `null` leaves one out. */
function moduleWith(members: Record<string, string | null>): { text: string; name: string } {
  const name = `broken-${kinds++}`;
  const lines = Object.entries({ ...WHOLE, ...members }).flatMap(([member, value]) =>
    value === null ? [] : `  ${member}: ${value.replaceAll("NAME", name)},`,
  );
  return { name, text: ["export const taskKinds = [", "{", ...lines, "},", "];"].join("\n") };
}

async function load(text: string) {
  using dir = tempDir();
  const path = dir.file("mine.ts");
  await Bun.write(path, text);
  return await failureOf(() => loadTaskModules([path], 300)).then(({ code, message, mend }) => ({
    code,
    message: message.replaceAll(`${dir.path}/`, ""),
    mend,
  }));
}

describe("a broken module is refused when it is loaded, with its line and what is wanted", () => {
  test.each<[what: string, text: string, message: string]>([
    ["nothing", "", "mine.ts:1: it does not export taskKinds, but nothing"],
    [
      "a syntax error",
      "\nexport const = 1;",
      'mine.ts:2: can\'t be loaded: Expected identifier but found "="',
    ],
    [
      "an error at its top level",
      "\n\nthrow new Error('no luck');",
      "mine.ts:3: can't be loaded: no luck",
    ],
    [
      "a missing file",
      'import { a } from "./no.ts";\nexport const taskKinds = [a];',
      "can't be loaded: Cannot find module './no.ts'",
    ],
    [
      "a missing package",
      'import a from "@none/nowhere";\nexport const taskKinds = [a];',
      "can't be loaded: Cannot find",
    ],
    [
      "an await for ever",
      "\nawait new Promise(() => {});",
      "mine.ts:1: did not finish loading in 300 ms",
    ],
    ["another export", "\nexport const x = 1;", "mine.ts:2: it does not export taskKinds, but x"],
    ["a default export", "export default [];", "it has a default export, which is not looked at"],
    [
      "a misspelt export",
      "\nexport const taskkinds = [];",
      "mine.ts:2: it exports taskkinds, and not taskKinds",
    ],
    [
      "one kind in no list",
      "export const taskKinds = { name: 'a' };",
      "mine.ts:1: taskKinds must be a list, not an object with name",
    ],
    ["no kinds", "export const taskKinds = [];", "taskKinds is an empty list"],
    ["null", "export const taskKinds = null;", "taskKinds must be a list, not null"],
    [
      "a function as kind",
      "export const taskKinds = [() => {}];",
      "taskKinds[0] must hold task kinds, not a function",
    ],
    [
      "undefined as kind",
      "export const taskKinds = [undefined];",
      "taskKinds[0] must hold task kinds, not undefined",
    ],
  ])("%s", async (_what, text, message) => {
    const failure = await load(text);
    expect([failure.code, failure.message]).toEqual([
      "task_module_invalid",
      expect.stringContaining(message),
    ]);
    expect(failure.message).toStartWith("the task module mine.ts:");
    expect(failure.mend).toBeString();
  });

  test.each<[member: string, value: string | null, line: number, message: string]>([
    ["name", null, 1, "taskKinds[0].name must be 1-64 of A-Z a-z 0-9 . _ -, not undefined"],
    ["name", '"a b"', 3, 'taskKinds[0] (a b).name must be 1-64 of A-Z a-z 0-9 . _ -, not "a b"'],
    ["name", "3", 3, "taskKinds[0].name must be"],
    ["name", '"math"', 3, "there is a task kind math already"],
    ["dataSources", null, 3, ".dataSources must be a list of data_source values, not undefined"],
    ["dataSources", '"one"', 4, '.dataSources must be a list of data_source values, not "one"'],
    ["dataSources", "[]", 4, "not an empty list"],
    ["dataSources", '["a", 3]', 4, "must hold texts, not 3"],
    ["dataSources", '["a*b"]', 4, "a * stands at the end only"],
    ["dataSources", '["*"]', 4, "a * stands at the end only"],
    ["dataSources", '["x1", "x1"]', 4, 'has "x1" twice'],
    ["dataSources", '["deepscaler"]', 4, "data_source deepscaler means another kind already"],
    ["needsBackend", null, 3, ".needsBackend must be true or false, not undefined"],
    ["needsBackend", '"no"', 5, '.needsBackend must be true or false, not "no"'],
    ["tools", null, 3, ".tools must be a list of tools"],
    [
      "tools",
      '["execute_bsh"]',
      6,
      '.tools there is no tool "execute_bsh": did you mean "execute_bash"?',
    ],
    ["tools", '["bash!"]', 6, 'there is no tool "bash!": use execute_bash, '],
    ["tools", '["think", "think"]', 6, 'has "think" twice'],
    ["tools", '"finish"', 6, 'not "finish"'],
    ["parse", null, 3, ".parse must be a function parse(row) → instance, not undefined"],
    ["parse", "async () => ({})", 7, ".parse must not be async"],
    ["parse", "{}", 7, "must be a function parse(row) → instance, not an object without fields"],
    ["sandboxes", "async () => ({})", 8, ".sandboxes must not be async"],
    ["sandboxes", "{ agent: true }", 8, "must be a function sandboxes(instance, settings)"],
    ["init", "true", 9, "must be a function init(instance, sandbox, signal) → promise, not true"],
    ["run", "function* () {}", 10, "not a generator"],
    ["run", "class {}", 10, "not a class"],
    ["evaluate", null, 3, ".evaluate must be a function evaluate(instance, outcome, context)"],
    ["golden", "3", 12, ".golden must be a function golden(instance, which)"],
    ["limitsAreVerdicts", "1", 12, ".limitsAreVerdicts must be true or false, not 1"],
  ])("%s: %p", async (member, value, line, message) => {
    const failure = await load(moduleWith({ [member]: value }).text);
    expect([failure.code, failure.message]).toEqual([
      "task_module_invalid",
      expect.stringContaining(message),
    ]);
    expect(failure.message).toStartWith(`the task module mine.ts:${line}: `);
  });

  test("a misspelt member is told by what was meant, and a kind beside a broken one is not kept", async () => {
    const { text } = moduleWith({ evaluate: null, evalute: WHOLE.evaluate ?? "" });
    expect((await load(text)).message).toEndWith("evalute is not known: did you mean evaluate?");
    const good = moduleWith({});
    const two = `${good.text}\ntaskKinds.push({ ...taskKinds[0], name: "other", tools: ["no"] });`;
    expect((await load(two)).message).toContain('taskKinds[1] (other).tools there is no tool "no"');
    expect((await failureOf(() => taskKindByName(good.name))).code).toBe("unknown_task_kind");
  });
});

/** A kind with one member of its own, loaded; messages and details have the module's path as `mine.ts`. */
async function loaded(members: Record<string, string>) {
  const dir = tempDir();
  const path = dir.file("mine.ts");
  const { text, name } = moduleWith(members);
  await Bun.write(path, text);
  await loadTaskModules([path]);
  const kind = taskKindByName(name);
  const failure = async (work: () => unknown) => {
    const { code, message, details } = await failureOf(work as never);
    const plain = (told: unknown) =>
      JSON.parse(JSON.stringify(told ?? null).replaceAll(path, "mine.ts"));
    return { code, message: plain(message).replace(name, "KIND"), details: plain(details) };
  };
  return { kind, failure, [Symbol.dispose]: () => dir[Symbol.dispose]() };
}

const OUTCOME = { stop_reason: "done", final_message: null, turns: 0 } as const;

describe("what a kind returns is looked at, and told with its line and what is wanted", () => {
  test.each<[value: string, said: string]>([
    ["undefined", "undefined"],
    ["null", "null"],
    ["1", "1"],
    ["true", "true"],
    ["[]", "an empty list"],
    ["({})", "reward: undefined"],
    ['({ reward: "1", rule: "r", reason: "." })', 'reward: "1"'],
    ["({ reward: null, rule: 'r', reason: '.' })", "reward: null"],
    ["({ reward: true, rule: 'r', reason: '.' })", "reward: true"],
    ["({ reward: NaN, rule: 'r', reason: '.' })", "reward: NaN"],
    ["({ reward: 1 / 0, rule: 'r', reason: '.' })", "reward: Infinity"],
    ["({ reward: 1.5, rule: 'r', reason: '.' })", "reward: 1.5"],
    ["({ reward: -1, rule: 'r', reason: '.' })", "reward: -1"],
    ["({ reward: 1n, rule: 'r', reason: '.' })", "reward: 1n"],
    ["({ reward: 1, reason: '.' })", "rule: undefined"],
    ["({ reward: 1, rule: 'r' })", "reason: undefined"],
    ["({ reward: 1, rule: 'r', reason: '.', details: 3 })", "details: 3"],
    [
      "({ reward: 1, rule: 'r', reason: '.', details: { a: 1n } })",
      "what can't be written as JSON",
    ],
  ])("evaluate gives %s", async (value, said) => {
    using t = await loaded({ evaluate: `async () => ${value}` });
    const { code, message, details } = await t.failure(() =>
      t.kind.evaluate({}, OUTCOME, evalContext()),
    );
    expect(code).toBe("verifier_failed");
    expect(message).toStartWith(`the verifier of kind KIND returned ${said}`);
    expect(message).toEndWith(
      "(mine.ts:11); return {reward: number from 0 to 1, rule: string, reason: string}",
    );
    expect(details).toEqual({ file: "mine.ts", line: 11 });
  });

  test.each<[member: "parse" | "sandboxes" | "run", value: string, message: string]>([
    [
      "parse",
      "() => {}",
      "`parse` of kind KIND returned undefined (mine.ts:7); return the instance",
    ],
    ["parse", "() => null", "returned null"],
    ["parse", "() => Promise.resolve({})", "returned a promise"],
    [
      "sandboxes",
      "() => {}",
      "`sandboxes` of kind KIND returned undefined (mine.ts:8); return {agent",
    ],
    ["sandboxes", "() => ({ agent: true })", "returned evaluation: undefined"],
    [
      "sandboxes",
      "() => ({ agent: 'yes', evaluation: 'none', image: null })",
      'returned agent: "yes"',
    ],
    ["sandboxes", "() => ({ agent: true, evaluation: 'frsh', image: null })", 'evaluation: "frsh"'],
    [
      "sandboxes",
      "() => ({ agent: false, evaluation: 'agent', image: null })",
      "without an agent's sandbox",
    ],
    ["sandboxes", "() => ({ agent: true, evaluation: 'none' })", "image: undefined"],
    [
      "run",
      "async () => {}",
      "`run` of kind KIND returned undefined (mine.ts:10); return {stop_reason",
    ],
    [
      "run",
      "() => ({ stop_reason: 'finished', final_message: null, turns: 0 })",
      'stop_reason: "finished"',
    ],
    ["run", "() => ({ stop_reason: 'done', turns: 0 })", "final_message: undefined"],
    ["run", "() => ({ stop_reason: 'done', final_message: null, turns: 'one' })", 'turns: "one"'],
    ["run", "() => ({ stop_reason: 'done', final_message: null, turns: 0, state: 1n })", "as JSON"],
    ["run", "(_, c) => c.agent()", "asked for undefined (mine.ts:10); call context.agent({prompt"],
    ["run", "(_, c) => c.agent({ prompt: 'hi', tools: [] })", 'asked for prompt: "hi"'],
    ["run", "(_, c) => c.agent({ prompt: { messages: 'hi' }, tools: [] })", 'messages: "hi"'],
    [
      "run",
      "(_, c) => c.agent({ prompt: { messages: [{ role: 'usr', content: 'x' }] }, tools: [] })",
      'messages[0].role: "usr"',
    ],
    [
      "run",
      "(_, c) => c.agent({ prompt: { messages: [{ role: 'user' }] }, tools: [] })",
      "messages[0].content: undefined",
    ],
    [
      "run",
      "(_, c) => c.agent({ prompt: { texts: { system: null, user: 'x' }, fields: { n: 1 } }, tools: [] })",
      "prompt.fields.n: 1",
    ],
    [
      "run",
      "(_, c) => c.agent({ prompt: { messages: [{ role: 'user', content: 'x' }] }, tools: ['fnish'] })",
      'did you mean "finish"?',
    ],
    ["run", "(_, c) => c.converse([], [])", "asked for messages: an empty list"],
  ])("%s is %s", async (member, value, wanted) => {
    using t = await loaded({ [member]: value });
    const work = {
      parse: () => t.kind.parse({}),
      sandboxes: () => t.kind.sandboxes({}, TASK_SETTINGS),
      run: () => t.kind.run({}, runContext()),
    };
    const { code, message } = await t.failure(work[member]);
    const expected = member === "run" ? "task_failed" : "task_module_invalid";
    expect([code, message]).toEqual([expected, expect.stringContaining(wanted)]);
  });

  test("synchronous functions and kinds that are classes work like any", async () => {
    using t = await loaded({
      evaluate: "() => ({ reward: 0.5, rule: 'r', reason: '.' })",
      run: "() => ({ stop_reason: 'done', final_message: 'x', turns: 0 })",
    });
    expect((await t.kind.evaluate({}, OUTCOME, evalContext())).reward).toBe(0.5);
    expect(await t.kind.run({}, runContext())).toMatchObject({ final_message: "x" });
    using dir = tempDir();
    const path = dir.file("class.ts");
    const body =
      "get dataSources() { return ['as-class']; } needsBackend = false; tools = []; name = 'as-class'; answer = 7;";
    const methods =
      "parse() { return { answer: this.answer }; } sandboxes() { return { agent: false, evaluation: 'none', image: null }; } async init() {} async run() {} async evaluate() {}";
    await Bun.write(
      path,
      `class Kind { ${body} ${methods} }\nexport const taskKinds = [new Kind()];`,
    );
    await loadTaskModules([path]);
    expect(taskKindByName("as-class").parse({})).toEqual({ answer: 7 });
  });
});

describe("what a kind throws carries file, line and stack", () => {
  test.each<[member: "run" | "evaluate" | "init", value: string, message: string]>([
    [
      "run",
      "async () => { null.x; }",
      "TypeError: null is not an object (evaluating 'null.x') (mine.ts:10)",
    ],
    ["evaluate", "async () => { throw new Error('no file'); }", "no file (mine.ts:11)"],
    ["init", "() => { throw new Error('at once'); }", "at once (mine.ts:9)"],
  ])("%s: %s", async (member, value, message) => {
    using t = await loaded({ [member]: value });
    const work = {
      init: () => t.kind.init({}, null, AbortSignal.any([])),
      run: () => t.kind.run({}, runContext()),
      evaluate: () => t.kind.evaluate({}, OUTCOME, evalContext()),
    };
    const failure = await t.failure(work[member]);
    expect(failure.message).toBe(message);
    const { file, line, stack, function: called } = failure.details;
    expect([file, called, line]).toEqual([
      "mine.ts",
      member,
      Number(/:(\d+)\)$/.exec(message)?.[1]),
    ]);
    expect(stack).toContain("mine.ts:");
    expect(stack).not.toContain("guarded.ts");
  });

  test.each(["'a text'", "null", "undefined", "3", "{ a: 1 }"])("throws %s", async (value) => {
    using t = await loaded({ run: `() => { throw ${value}; }` });
    const failure = await t.failure(() => t.kind.run({}, runContext()));
    expect([failure.code, failure.message]).toEqual([
      "task_failed",
      expect.stringMatching(/^it threw .*\(mine\.ts\)$/),
    ]);
  });

  test("a row that parse refuses is told in its words, and a mistake in parse with its line", async () => {
    using refusing = await loaded({ parse: "() => { throw new Error('a row has a text'); }" });
    expect(await refusing.failure(() => refusing.kind.parse({}))).toMatchObject({
      ...{ code: "invalid_field", message: "a row has a text" },
    });
    using broken = await loaded({ parse: "(row) => ({ length: row.text.length })" });
    const { message } = await broken.failure(() => broken.kind.parse({}));
    expect(message).toMatch(/^TypeError: .*row\.text\.length.*\(mine\.ts:7\)$/);
  });
});

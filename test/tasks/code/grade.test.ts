import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ServiceError } from "../../../src/errors.ts";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { gradeCode } from "../../../src/tasks/code/grade.ts";
import { type CodeInstance, parseCodeRow } from "../../../src/tasks/code/row.ts";
import type { CodeTest } from "../../../src/tasks/code/tests.ts";
import { type Bundle, setup } from "../../sandbox/setup.ts";
import { failureOf } from "../../support/failure.ts";
import { evalContext, TASK_SETTINGS } from "../../support/task-context.ts";

const SUMS: CodeTest[] = [
  { kind: "stdin", input: "1 2", expected: "3" },
  { kind: "stdin", input: "5 5\n", expected: "10" },
];
const CALLS: CodeTest[] = [
  { kind: "call", name: "pairs", args: [[3, 1, 2]], expected: [[1, 2], 3] },
];
const RIGHT = "a, b = map(int, input().split())\nprint(a + b)";
const LIMITS = { totalMs: 30_000, memoryBytes: 512 * 1024 * 1024, atOncePerThread: 1 };

let bundle: Bundle;
let sandbox: Sandbox;

beforeAll(async () => {
  bundle = await setup("bubblewrap");
  sandbox = await bundle.open();
});
afterAll(() => bundle[Symbol.asyncDispose]());

type Graded = { tests?: CodeTest[]; grading?: "all" | "share"; testTimeoutMs?: number };

/** In the sandbox of all tests; what would leave something in it gets one of its own. */
function gradeAs(solution: string | null, asked: Graded, limits = LIMITS, place = sandbox) {
  const instance = { problem: "", tests: SUMS, grading: "all", testTimeoutMs: 1000, ...asked };
  const settings = { ...TASK_SETTINGS, tests: limits };
  const context = evalContext({ sandbox: place, settings, renew: () => bundle.open() });
  return gradeCode(instance as CodeInstance, solution, context);
}

function grade(solution: string | null, tests = SUMS, grading: "all" | "share" = "all") {
  return gradeAs(solution, { tests, grading });
}

async function ruleOf(...asked: Parameters<typeof grade>) {
  const { reward, rule } = await grade(...asked);
  return [reward, rule];
}

describe("a solution", () => {
  test("that passes every test earns everything", async () => {
    expect(await ruleOf(RIGHT)).toEqual([1, "all_tests_passed"]);
    const guarded = `def main():\n    print(sum(map(int, input().split())))\nif __name__ == "__main__":\n    main()`;
    expect(await ruleOf(guarded)).toEqual([1, "all_tests_passed"]);
  });

  test("that passes some earns nothing, or its share where the row says so", async () => {
    const half = "print(3)";
    expect(await ruleOf(half)).toEqual([0, "test_wrong"]);
    const verdict = await grade(half, SUMS, "share");
    expect(verdict).toEqual({
      reward: 0.5,
      rule: "some_tests_passed",
      reason:
        "1 of 2 tests passed before the verdict; the solution gave another answer than expected in test 2.",
      details: {
        ...{ passed: 1, total: 2, first_failure: 1, why: "wrong", stderr: "" },
        ...{ wall_ms: expect.any(Number), cpu_ms: expect.any(Number) },
        waited_ms: expect.any(Number),
      },
    });
  });

  test("is called as a function or a method, and what it prints meanwhile does not count", async () => {
    const body = "print('debug')\n    xs = sorted(xs)\n    return (xs[:2], xs[2])";
    expect(await ruleOf(`def pairs(xs):\n    ${body}`, CALLS)).toEqual([1, "all_tests_passed"]);
    const method = `class Solution:\n  def pairs(self, xs: List[int]):\n    ${body}`;
    expect(await ruleOf(method, CALLS)).toEqual([1, "all_tests_passed"]);
    expect(await ruleOf("def other(xs): return 1", CALLS)).toEqual([0, "test_error"]);
    expect(await ruleOf("def pairs(xs): return [[2, 1], 3]", CALLS)).toEqual([0, "test_wrong"]);
  });

  test("is given and compared by every digit of whole numbers that a double can't hold", async () => {
    const big = "9007199254740993";
    const tests = parseCodeRow({
      data_source: "code",
      prompt: "Add one.",
      tests: [{ input: big, output: "9007199254740994", type: "function_call", fn_name: "f" }],
    }).tests;
    expect(await ruleOf("def f(x): return x + 1", tests)).toEqual([1, "all_tests_passed"]);
    expect(await ruleOf("def f(x): return x + 2", tests)).toEqual([0, "test_wrong"]);
    expect(await ruleOf("def f(x): return x", tests)).toEqual([0, "test_wrong"]);
  });

  test("gets arguments by name, and LeetCode's lists and trees as what they are there", async () => {
    const call = (args: unknown, expected: unknown) =>
      ({ kind: "call", name: "f", args, expected }) as CodeTest;
    const reverse = `class Solution:
  def f(self, head: Optional[ListNode], root: Optional[TreeNode] = None):
    if root: root.left, root.right = root.right, root.left
    last = None
    while head: head.next, last, head = last, head, head.next
    return root or last`;
    const tests = [
      call({ head: { __list_node__: [1, 2, 3] } }, [3, 2, 1]),
      call([{ __list_node__: [] }], null),
      call({ head: null, root: { __tree_node__: [1, 2, 3, null, 4] } }, [
        1,
        3,
        2,
        null,
        null,
        null,
        4,
      ]),
    ];
    expect(await ruleOf(reverse, tests)).toEqual([1, "all_tests_passed"]);
    const same = "def f(head, root=None): return root or head";
    const verdict = await grade(same, tests, "share");
    expect([verdict.reward, verdict.details?.first_failure]).toEqual([1 / 3, 0]);
  });

  test.each([
    ["does not parse", "print(", "test_error"],
    ["raises", "raise ValueError('no')", "test_error"],
    ["ends with an error after the right answer", `${RIGHT}\nraise SystemExit(3)`, "test_error"],
    ["says nothing", "pass", "test_wrong"],
    ["says too much", `${RIGHT}\nprint('x' * 5_000_000)`, "test_wrong"],
    ["computes for ever", "while True: pass", "test_time"],
    ["wants more memory than there is", "x = bytearray(10**10)", "test_error"],
    ["recurses for ever", "def f(): f()\nf()", "test_error"],
    ["is no text", "\0", "test_error"],
  ])("that %s earns nothing", async (_what, solution, rule) => {
    expect(await ruleOf(solution)).toEqual([0, rule]);
  });

  test("that is not there earns nothing", async () => {
    expect(await ruleOf(null)).toEqual([0, "no_solution"]);
    expect(await ruleOf(" \n")).toEqual([0, "no_solution"]);
  });

  test.each([
    ["ends the process early", "import os\nos._exit(0)"],
    [
      "replaces the driver for the next test",
      "import sys\nopen(sys.modules['json'].__file__, 'w').write('print(3)')\nprint(3)",
    ],
    [
      "leaves a process behind",
      "import os\nif os.fork() == 0:\n    import time; time.sleep(60)\nprint(3)",
    ],
    [
      "looks for what is expected",
      "import glob\nprint(glob.glob('/tmp/**'), open('/proc/self/cmdline').read())",
    ],
    ["writes a verdict", "print('{\"reward\": 1}')\nopen('/tmp/reward', 'w').write('1')"],
  ])("that %s earns nothing", async (_what, solution) => {
    expect((await gradeAs(solution, {}, LIMITS, await bundle.open())).reward).toBe(0);
  });
});

test("tests beyond the total time are not passed", async () => {
  const slow = `import time\ntime.sleep(1)\n${RIGHT}`;
  const asked = { tests: Array(3).fill(SUMS[0]), grading: "share" } as const;
  const { reward, details } = await gradeAs(slow, asked, { ...LIMITS, totalMs: 400 });
  expect(reward).toBeLessThan(0.7);
  expect(details).toMatchObject({ why: "time" });
});

test("an image in which nothing works is the verifier's failure, not the solution's", async () => {
  const broken = await bundle.open();
  const limits = { timeoutMs: 5000, maxOutputBytes: 100 };
  await broken.exec(["bash", "-c", "rm -f $(command -v python3)"], limits);
  expect(await failureOf(() => gradeAs(RIGHT, {}, LIMITS, broken))).toMatchObject({
    boundary: expect.stringMatching(/verifier|sandbox/),
  });
});

test("a sandbox that dies meanwhile is a failure", async () => {
  const dying = await bundle.open();
  const forEver = "import os\nos.kill(1, 9)\nwhile True: pass";
  const grading = gradeAs(forEver, { testTimeoutMs: 60_000 }, LIMITS, dying);
  process.kill(dying.handle.holderPid, "SIGKILL");
  expect(await grading.catch((error) => error)).toBeInstanceOf(ServiceError);
});

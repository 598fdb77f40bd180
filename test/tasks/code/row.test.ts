import { describe, expect, test } from "bun:test";
import { deflateSync } from "node:zlib";
import { parseCodeRow } from "../../../src/tasks/code/row.ts";
import type { CodeTest } from "../../../src/tasks/code/tests.ts";
import { failureOf } from "../../support/failure.ts";

const PROMPT = [{ role: "user", content: "Add two numbers." }];
const STDIN: CodeTest = { kind: "stdin", input: "1 2\n", expected: "3" };
const CALL: CodeTest = { kind: "call", name: "add", args: [1, 2], expected: 3 };

function testsOf(row: Record<string, unknown>) {
  return parseCodeRow({ data_source: "code", prompt: PROMPT, ...row }).tests;
}

/** A text as `pickle.dumps` writes it, protocol 4. */
function pickled(text: string): string {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  const frame = Buffer.alloc(9, 0);
  frame[0] = 0x95;
  const content = [Buffer.from([0x80, 4]), frame, Buffer.from([0x58]), length, bytes];
  return deflateSync(Buffer.concat([...content, Buffer.from([0x94, 0x2e])])).toString("base64");
}

describe("the tests of a row", () => {
  const written: [source: string, value: unknown][] = [
    ["(1)", 1],
    ["(1,)", [1]],
    ["((1, 2),)", [[1, 2]]],
    ["()", []],
    ["{1, 2}", [1, 2]],
    ["{1: 2}", { "1": 2 }],
    ["{}", {}],
    [
      String.raw`"\U0001F600 \u00e9 \x41 \101 \0 \d \t \' \""`,
      "\u{1F600} \u00e9 A A \0 \\d \t ' \"",
    ],
  ];
  test.each(written)("are read as Python means %s", (source, expected) => {
    const functional = `def check(candidate):\n    assert candidate(1) == ${source}\n\ncheck(f)`;
    const tests = [{ kind: "call", name: "f", args: [1], expected }];
    expect(testsOf({ tests: { functional } }) as unknown).toEqual(tests);
  });

  test("keep every digit of a whole number, written as JSON or as Python", () => {
    const functional = `def check(candidate):
    assert candidate(n = 9007199254740993) == -12345678901234567890

check(Solution().f)
`;
    const call = { kind: "call", name: "f", expected: -12345678901234567890n } as const;
    expect(testsOf({ tests: { functional } })).toEqual([
      { ...call, args: { n: 9007199254740993n } },
    ]);
    const json =
      '{"fn_name": "f", "inputs": [[9007199254740993]], "outputs": [-12345678901234567890]}';
    expect(testsOf({ tests: json })).toEqual([{ ...call, args: [9007199254740993n] }]);
  });

  test.each(["[", "list_node("])(
    "that lie too deep within each other are refused: %s",
    async (open) => {
      const functional = `def check(candidate):
    assert candidate(${open.repeat(200_000)}) == 1

check(f)
`;
      const refused = await failureOf(() => testsOf({ tests: { functional } }));
      expect([refused.code, refused.field]).toEqual(["invalid_field", "instance.tests"]);
      const deep = `{"inputs": [${"[".repeat(200_000)}${"]".repeat(200_000)}], "outputs": ["1"]}`;
      expect((await failureOf(() => testsOf({ tests: deep }))).code).toBe("invalid_field");
    },
  );

  test.each([
    ["DeepCoder, PrimeIntellect", [{ type: "stdin_stdout", input: "1 2\n", output: "3" }], STDIN],
    ["DeepCoder, TACO", { inputs: ["1 2\n"], outputs: ["3"] }, STDIN],
    ["TACO with lists of lines", { inputs: [["1 2", ""]], outputs: [["3"]] }, STDIN],
    ["Codeforces", [{ input: "1 2\n", output: "3" }], STDIN],
    ["APPS with a function", { fn_name: "add", inputs: [[1, 2]], outputs: [3] }, CALL],
    [
      "LiveCodeBench with a function",
      [{ input: "1\n2", output: "3", testtype: "functional", metadata: { func_name: "add" } }],
      CALL,
    ],
    [
      "PrimeIntellect with a function",
      [{ type: "function_call", fn_name: "add", input: [1, 2], output: 3 }],
      CALL,
    ],
  ])("as %s writes them, as JSON and as its text", (_name, truth, expected) => {
    expect(testsOf({ reward_model: { ground_truth: truth } })).toEqual([expected]);
    const text = JSON.stringify({ ground_truth: JSON.stringify(truth) });
    expect(testsOf({ reward_model: text })).toEqual([expected]);
  });

  test("as sets of LeetCode problems write them, in Python, of which nothing is run", () => {
    const functional = `def check(candidate):
    assert candidate(nums = [2, -7,1.5e2], words = ["a\\"b", 'c'], flag=True, none = None) == {"x": (1, 2)}
    assert candidate([[".",
      "9"]],) == []
    assert is_same_list(candidate(l1 = list_node([2,4]), root = tree_node([1,None,2])), list_node([7, 0]))
    assert is_same_tree(candidate(tree_node([])), tree_node([]))


check(Solution().merge)`;
    const args = { nums: [2, -7, 150], words: ['a"b', "c"], flag: true, none: null };
    const nodes = { l1: { __list_node__: [2, 4] }, root: { __tree_node__: [1, null, 2] } };
    expect(testsOf({ problem: "Merge.", prompt: null, tests: { functional } })).toEqual([
      { kind: "call", name: "merge", args, expected: { x: [1, 2] } },
      { kind: "call", name: "merge", args: [[[".", "9"]]], expected: [] },
      { kind: "call", name: "merge", args: nodes, expected: [7, 0] },
      { kind: "call", name: "merge", args: [{ __tree_node__: [] }], expected: null },
    ]);
  });

  test("as NeMo Gym writes them", () => {
    const unit_tests = { inputs: ["1 2\n"], outputs: ["3"], fn_name: null };
    const responses_create_params = { input: PROMPT };
    const row = { responses_create_params, verifier_metadata: { unit_tests } };
    expect(parseCodeRow({ data_source: "code", ...row })).toEqual({
      problem: "Add two numbers.",
      tests: [STDIN],
      grading: "all",
      testTimeoutMs: 10_000,
    });
  });

  test("as raw rows of APPS and LiveCodeBench have them", () => {
    const apps = { question: "Add.", input_output: '{"inputs":["1 2\\n"],"outputs":["3"]}' };
    expect(parseCodeRow({ data_source: "apps", ...apps })).toMatchObject({ tests: [STDIN] });
    const row = {
      data_source: "livecodebench",
      question_content: "Add.",
      starter_code: "class Solution:\n    def add(self, a, b):\n",
      metadata: '{"func_name": "add"}',
      private_test_cases: pickled('[{"input":"1\\n2","output":"3","testtype":"functional"}]'),
    };
    const { problem, tests } = parseCodeRow(row);
    expect([problem, tests]).toEqual([
      "Add.\n\nBegin with this code:\n\nclass Solution:\n    def add(self, a, b):",
      [CALL],
    ]);
  });

  test("are graded as the set is: DeepCoder by its 15 longest and all or nothing, PRIME by share", () => {
    const inputs = Array.from({ length: 20 }, (_, index) => "x".repeat(index));
    const ground_truth = { inputs, outputs: inputs };
    const parsed = (data_source: string, more = {}) => {
      const row = { data_source, prompt: PROMPT, reward_model: { ground_truth }, ...more };
      const { tests, grading, testTimeoutMs } = parseCodeRow(row);
      return [tests.length, grading, testTimeoutMs];
    };
    expect(parsed("deepcoder_lcb")).toEqual([15, "all", 12_000]);
    expect(parsed("taco")).toEqual([20, "share", 10_000]);
    const own = { grading: "all", max_tests: 3, test_timeout_ms: 500 };
    expect(parsed("taco", own)).toEqual([3, "all", 500]);
    const first = testsOf({ data_source: "deepcoder", reward_model: { ground_truth } })[0];
    expect(first).toMatchObject({ input: "x".repeat(19) });
  });
});

test("the suffix that sets append for models without tools is left out", () => {
  const suffix =
    "\n\nWrite Python code to solve the problem. Present the code in \n```python\nYour code\n```\nat the end.";
  const prompt = JSON.stringify([{ content: `Add.${suffix}` }]);
  const reward_model = { ground_truth: [{ input: "1", output: "1" }] };
  expect(parseCodeRow({ prompt, reward_model }).problem).toBe("Add.");
});

test.each([
  [{}, "instance.reward_model"],
  [{ reward_model: { ground_truth: "[]" } }, "instance.reward_model"],
  [
    { reward_model: { ground_truth: "assert add(1, 2) == 3" } },
    "instance.reward_model.ground_truth",
  ],
  [
    { reward_model: { ground_truth: { inputs: ["1"], outputs: [] } } },
    "instance.reward_model.ground_truth",
  ],
  [{ tests: [{ input: "1" }] }, "instance.tests"],
  [{ tests: [{ input: "1", output: "1", testtype: "functional" }] }, "instance.tests"],
  [{ tests: { functional: "assert f(1) == 2" } }, "instance.tests"],
  [
    { tests: { functional: "def c(c):\n  assert candidate({1}) == 1\ncheck(f)" } },
    "instance.tests",
  ],
  [{ tests: { inputs: ["1"], outputs: [null] } }, "instance.tests"],
  [{ tests: { inputs: ["1"], outputs: [true] } }, "instance.tests"],
  [{ tests: { functional: "def check(c):\n  assert open('/x')\ncheck(f)" } }, "instance.tests"],
  [{ tests: { functional: "def c(c):\n  assert candidate(x) == 1\ncheck(f)" } }, "instance.tests"],
  [{ private_test_cases: "eJwDAAAAAAEAAAAAAAA=" }, "instance.private_test_cases"],
  [{ tests: [{ input: "1", output: "1" }], prompt: null }, "instance.prompt"],
  [{ tests: [{ input: "1", output: "1" }], grading: "most" }, "instance.grading"],
])("a row that can't be graded is refused at its field: %j", async (row, field) => {
  const failure = await failureOf(() => testsOf(row));
  expect([failure.code, failure.field]).toEqual(["invalid_field", field]);
});

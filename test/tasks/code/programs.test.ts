import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { gradeCode } from "../../../src/tasks/code/grade.ts";
import { parseCodeRow } from "../../../src/tasks/code/row.ts";
import { type Bundle, setup } from "../../sandbox/setup.ts";
import { evalContext } from "../../support/task-context.ts";

let bundle: Bundle;
let sandbox: Sandbox;
beforeAll(async () => {
  bundle = await setup("bubblewrap");
  sandbox = await bundle.open();
});
afterAll(() => bundle[Symbol.asyncDispose]());

async function verdictOf(solution: string, tests: unknown) {
  const instance = parseCodeRow({ data_source: "code", prompt: "…", tests });
  const context = evalContext({ sandbox, renew: () => bundle.open() });
  const { rule, details } = await gradeCode(instance, solution, context);
  return rule === "all_tests_passed" ? rule : `${rule}: ${details?.stderr}`;
}

/** A program that reads and writes. */
const prints = (solution: string, input: string, output: string) =>
  verdictOf(solution, [{ input, output }]);

/** A function, with arguments and what it returns as values of the row. */
const returns = (solution: string, args: unknown[], output: unknown) =>
  verdictOf(solution, { fn_name: "f", inputs: [args], outputs: [output] });

describe("a right program passes that", () => {
  test.each([
    [
      "has dataclasses under `from __future__ import annotations`",
      `from __future__ import annotations
from dataclasses import dataclass, field
@dataclass(order=True)
class P:
    x: int
    y: list[int] = field(default_factory=list, compare=False)
    nearest: ClassVar[P | None] = None
print(P(int(input())).x)`,
    ],
    [
      "pickles its own class",
      `import pickle
class P:
    def __init__(self, x): self.x = x
print(pickle.loads(pickle.dumps(P(int(input())))).x)`,
    ],
    [
      "has processes of its own",
      `import multiprocessing as mp
def same(x): return x
if __name__ == "__main__":
    with mp.get_context("fork").Pool(2) as pool:
        print(pool.map(same, [int(input())])[0])`,
    ],
    [
      "has processes that import it again",
      `import multiprocessing as mp
def same(x): return x
if __name__ == "__main__":
    with mp.get_context("spawn").Pool(1) as pool:
        print(pool.map(same, [int(input())])[0])`,
    ],
    ["reads by fileinput", "import fileinput\nfor line in fileinput.input(): print(line.strip())"],
    ["looks at sys.argv", "import sys\nassert len(sys.argv) == 1\nprint(input())"],
    ["looks at __file__", "import os\nassert os.path.exists(__file__)\nprint(input())"],
    ["is guarded", "def main():\n    print(input())\nif __name__ == '__main__':\n    main()"],
    ["begins with a mark of its encoding", "\ufeff# -*- coding: utf-8 -*-\nprint(input())"],
    ["has lines of Windows", "x = input()\r\nif x:\r\n    print(x)\r\n"],
    ["reads by open(0)", "print(open(0).read().strip())"],
    ["reads by /dev/stdin", "print(open('/dev/stdin').readline().strip())"],
    ["reads bytes", "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read())"],
    ["reads to the end of the file", "import sys\nfor line in sys.stdin: print(line.strip())"],
    ["ends by exit()", "print(input())\nexit()"],
    ["ends by sys.exit(0)", "import sys\nprint(input())\nsys.exit(0)"],
    ["prints without a newline", "print(input(), end='')"],
    ["prints blanks and newlines of Windows", "print(input(), end=' \\r\\n\\r\\n')"],
    [
      "recurses deeply in a thread with a large stack",
      `import sys, threading
sys.setrecursionlimit(10**6)
threading.stack_size(2**27)
def deep(n): return 0 if n == 0 else 1 + deep(n - 1)
def main(): deep(60_000); print(input())
thread = threading.Thread(target=main); thread.start(); thread.join()`,
    ],
    [
      "recurses deeply",
      "def deep(n): return 0 if n == 0 else 1 + deep(n - 1)\ndeep(40_000)\nprint(input())",
    ],
    [
      "uses names of typing without an import",
      "def f(x: Optional[List[int]]) -> None: print(input())\nf(None)",
    ],
    [
      "uses builtins that operator, math and re have too",
      "assert pow(3, 4, 5) == 1 and abs(-1) == 1\nprint(input())",
    ],
    [
      "writes files where it is, and below /tmp",
      "open('a', 'w').write('x')\nopen('/tmp/b', 'w')\nprint(input())",
    ],
    ["uses asyncio", "import asyncio\nasync def main(): print(input())\nasyncio.run(main())"],
    [
      "starts a program",
      "import subprocess\nprint(subprocess.run(['cat'], capture_output=True, text=True).stdout)",
    ],
    ["is cached by functools", "@functools.cache\ndef f(x): return x\nprint(f(input()))"],
    [
      "names one of its functions `driver`",
      "def driver(path): return path\nprint(driver(input()))",
    ],
    [
      "asks for its own source",
      "import inspect\ndef f(): pass\nassert 'pass' in inspect.getsource(f)\nprint(input())",
    ],
    [
      "gets type hints",
      "import typing\nclass A:\n    x: 'int'\nassert typing.get_type_hints(A)['x'] is int\nprint(input())",
    ],
    [
      "makes named tuples and enumerations",
      "from enum import Enum\nfrom typing import NamedTuple\nclass C(Enum):\n    A = 1\nclass N(NamedTuple):\n    x: int\nprint(N(int(input())).x * C.A.value)",
    ],
  ])("%s", async (_how, solution) => {
    expect(await prints(solution, "7", "7")).toBe("all_tests_passed");
    expect(await prints(solution, "8\n", "8\n")).toBe("all_tests_passed");
  });

  test("prints much, and in any script", async () => {
    const text = "naïve 数 🎉 ".repeat(50_000).trim();
    expect(await prints("print(input())", text, text)).toBe("all_tests_passed");
    const lines = Array.from({ length: 200_000 }, (_, index) => index).join("\n");
    expect(await prints("for i in range(200_000): print(i)", "", lines)).toBe("all_tests_passed");
  });
});

describe("a right value is met", () => {
  test.each<[string, string, unknown[], unknown]>([
    ["a text of digits", "def f(x): return str(x)", [100], "100"],
    ["a text that is JSON", "def f(): return '[1, 2]'", [], "[1, 2]"],
    ["a text that Python has a word for", "def f(): return 'None'", [], "None"],
    ["an empty text", "def f(): return ''", [], ""],
    ["a number", "def f(): return 100", [], 100],
    ["None", "def f(): return None", [], null],
    ["a tuple", "def f(x): return tuple(x)", [[1, 2]], [1, 2]],
    [
      "tuples in a list",
      "def f(): return [(1, 'a'), (2, 'b')]",
      [],
      [
        [1, "a"],
        [2, "b"],
      ],
    ],
    ["a set", "def f(): return {10, 9, 1}", [], [1, 9, 10]],
    [
      "a frozen set of tuples",
      "def f(): return frozenset([(2, 1), (1, 2)])",
      [],
      [
        [1, 2],
        [2, 1],
      ],
    ],
    ["a generator", "def f(n):\n    yield from range(n)", [3], [0, 1, 2]],
    [
      "a map, a range, a deque",
      "def f(): return [map(int, '12'), range(2), deque([1])]",
      [],
      [[1, 2], [0, 1], [1]],
    ],
    ["keys of a dictionary", "def f(): return {1: 2, 3: 4}.keys()", [], [1, 3]],
    [
      "a dictionary with whole keys",
      "def f(): return {1: 'a', True and 2: 'b'}",
      [],
      { 1: "a", 2: "b" },
    ],
    ["a counter", "def f(x): return Counter(x)", ["aab"], { a: 2, b: 1 }],
    ["True for 1", "def f(): return True", [], 1],
    ["1 for true", "def f(): return 1", [], true],
    ["a whole float", "def f(): return 3.0", [], 3],
    ["a float", "def f(): return 0.1 + 0.2", [], 0.3],
    [
      "a fraction",
      "from fractions import Fraction\ndef f(): return [Fraction(4, 2), Fraction(1, 2)]",
      [],
      [2, 0.5],
    ],
    [
      "a decimal",
      "from decimal import Decimal\ndef f(): return [Decimal(10**17), Decimal('2.5')]",
      [],
      [10 ** 17, 2.5],
    ],
    ["bytes", "def f(): return b'abc'", [], "abc"],
    [
      "a subclass of int, str, list",
      "class I(int): pass\nclass S(str): pass\nclass L(list): pass\ndef f(): return L([I(1), S('a')])",
      [],
      [1, "a"],
    ],
    [
      "a whole enumeration",
      "from enum import IntEnum\nclass E(IntEnum):\n    A = 5\ndef f(): return E.A",
      [],
      5,
    ],
    ["what is wrapped in a list", "def f(): return [1, 2]", [], [[1, 2]]],
    [
      "what another library's scalar is",
      "class Int64:\n    def __init__(self, x): self.x = x\n    def tolist(self): return self.x\ndef f(): return [Int64(3), Int64([1, 2])]",
      [],
      [3, [1, 2]],
    ],
    [
      "a value beside what is printed",
      "import os\ndef f():\n    print('x'); os.write(1, b'y'); os.system('echo z')\n    return 1",
      [],
      1,
    ],
  ])("%s", async (_what, solution, args, expected) => {
    expect(await returns(solution, args, expected)).toBe("all_tests_passed");
  });

  test.each<[string, string, unknown]>([
    ["a number for its text", "def f(): return 100", "100"],
    ["a text for its number", "def f(): return '100'", 100],
    ["a list for its text", "def f(): return [1, 2]", "[1, 2]"],
    ["None for its text", "def f(): return None", "None"],
    ["nearly a whole number", "def f(): return 2.9999999999", 3],
    ["a whole number beside it", "def f(): return 10**15 + 1", 10 ** 15],
    ["another order", "def f(): return (2, 1)", [1, 2]],
    ["a set with one more", "def f(): return {1, 2, 3}", [1, 2]],
    ["False for None", "def f(): return False", null],
    ["an empty list for None", "def f(): return []", null],
  ])("and not by %s", async (_what, solution, expected) => {
    expect(await returns(solution, [], expected)).toStartWith("test_wrong");
  });

  test("of JSON text, where the row writes arguments so too", async () => {
    const tests = [
      { input: '"ab"\n2', output: '"abab"', type: "function_call", fn_name: "f" },
      { input: "[1]\n2", output: "[1, 1]", type: "function_call", fn_name: "f" },
    ];
    expect(await verdictOf("def f(x, n): return x * n", tests)).toBe("all_tests_passed");
    const python = [{ input: "3", output: "True", type: "function_call", fn_name: "f" }];
    expect(await verdictOf("def f(x): return x > 2", python)).toBe("all_tests_passed");
    const none = [{ input: "3", output: "None", type: "function_call", fn_name: "f" }];
    expect(await verdictOf("def f(x): return None", none)).toBe("all_tests_passed");
  });

  test("to the last digit of numbers that a float can't hold", async () => {
    const big = (output: string) => [{ input: "17", output, type: "function_call", fn_name: "f" }];
    const right = "100000000000000001";
    expect(await verdictOf("def f(n): return 10**n + 1", big(right))).toBe("all_tests_passed");
    expect(await verdictOf("def f(n): return 10**n", big(right))).toStartWith("test_wrong");
    expect(await verdictOf("def f(n): return 1e17", big(right))).toStartWith("test_wrong");
  });
});

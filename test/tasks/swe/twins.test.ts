import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import PLACES from "../../../src/tasks/swe/twin-places.py" with { type: "text" };
import TWINS from "../../../src/tasks/swe/twins.py" with { type: "text" };
import { parsePytest } from "../../../src/verifiers/tests/pytest-log.ts";
import { statusesOf } from "../../../src/verifiers/tests/status.ts";
import { type Bundle, EXEC, setup } from "../../sandbox/setup.ts";

const MODULE = `import unittest

import numpy
import pytest
from numpy.testing import assert_allclose


def double(number):
    return 2 * number


def test_number():
    assert double(2) == 4


@pytest.mark.parametrize("given", [1, 2])
def test_with_parameters(given):
    found = double(given)
    assert given + given == found, "a message"


def test_text_of_other_alphabets(): assert "größe" + "αβγ" == 'größeαβγ'


def test_nested():
    with open("/dev/null"):
        assert [{"a": double(1)}, ()] == [{"a": 2}, ()]


def test_exception():
    with pytest.raises(ZeroDivisionError):
        assert 1 / 0 == 5
    assert double(0) is not None


def test_close():
    assert_allclose(numpy.array([1e6, -1.0]), [1e6, -1.0], rtol=1e-3)


def test_words():
    assert not double(0)


def test_last_is_a_loop():
    assert double(1) > 1 and double(2) in (4, 5)
    for number in range(3):
        assert double(number) == 2 * number


class TestCases(unittest.TestCase):
    def test_equal(self):
        self.assertEqual(double(3), -(-6))

    def test_list(self):
        self.assertListEqual([double(-1)], [-2])

    def assertRenders(self, given, wanted):
        self.assertEqual(given.upper(), wanted)

    def test_own_assertion(self):
        self.assertRenders("some words", "SOME WORDS")

    def test_kind(self):
        """Has a docstring."""
        self.assertIsInstance(double(1), int)


async def test_skipped_itself():
    pytest.skip("not here")


@pytest.mark.parametrize("given, expected", [(1, 2), (2, 4), (3, 6)])
def test_of_a_table(given, expected):
    assert double(given) == expected


def test_of_a_variable():
    wanted = ["two words", "three more words"]
    assert [word + " words" for word in ("two", "three more")] == wanted


def test_of_errors():
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        1 / 0


def test_with_an_inner_function():
    def twice():
        return double(double(1))

    assert twice() == 4


@pytest.mark.xfail
def test_expected_to_fail():
    assert double(1) == 3


def test_returns_early():
    if double(1) == 2:
        return
    assert False


def test_asserts_nothing():
    double(1)
`;

const COPIED = [
  ...["test_number", "test_with_parameters", "test_text_of_other_alphabets", "test_nested"],
  ...["test_exception", "test_close", "test_words", "test_last_is_a_loop", "test_of_a_table"],
  ...["test_of_a_variable", "test_of_errors", "test_with_an_inner_function"],
  ...[
    "TestCases.test_equal",
    "TestCases.test_list",
    "TestCases.test_kind",
    "TestCases.test_own_assertion",
  ],
];
const LEFT = [
  ...["test_skipped_itself", "test_returns_early", "test_asserts_nothing", "test_unknown"],
  "test_expected_to_fail",
];

let bundle: Bundle;
let sandbox: Sandbox;

beforeAll(async () => {
  bundle = await setup("bubblewrap");
  sandbox = await bundle.open();
});
afterAll(() => bundle[Symbol.asyncDispose]());

type Made = {
  test: number;
  original: string;
  copies: string[];
  kinds: string[];
  renamed: boolean;
  inside: boolean;
};

async function twinsOf(module: string | Buffer, names: string[], copies = 100): Promise<Made[]> {
  await sandbox.writeFile("/tmp/twins/test_it.py", module);
  const tests = names.map((known, test) => {
    const [name, owner = null] = known.split(".").toReversed();
    return { test, file: "test_it.py", class: owner, name };
  });
  const plan = { folder: "/tmp/twins", files: ["test_it.py"], docstrings: true };
  const shares = [{ groups: 100, copies, tests }];
  const made = await sandbox.exec(["python3", "-I", "-S", "-c", `${PLACES}\n${TWINS}`], {
    ...{ ...EXEC, stdin: JSON.stringify({ ...plan, shares }) },
  });
  if (made.exitCode !== 0) throw new Error(made.stderr);
  return JSON.parse(made.stdout);
}

test.each([1, 2, 3, 4])(
  "of a test and its copies exactly one passes, whatever it asserts (%d)",
  async () => {
    const twins = await twinsOf(MODULE, [...COPIED, ...LEFT], 60);
    expect(twins.map(({ test }) => test).toSorted((a, b) => a - b)).toEqual([...COPIED.keys()]);
    const argv = ["python3", "-m", "pytest", "-rA", "-p", "no:cacheprovider", "test_it.py"];
    const { stdout } = await sandbox.exec(argv, {
      ...{ ...EXEC, cwd: "/tmp/twins", maxOutputBytes: 1 << 20, timeoutMs: 60_000 },
    });
    const statuses = statusesOf(parsePytest(stdout));
    const statusOf = (name: string) => [
      ...new Set(
        [...statuses].filter(([full]) => plain(full) === name).map(([, status]) => status),
      ),
    ];
    for (const { test, original, copies, inside } of twins) {
      expect([COPIED[test], original, ...statusOf(original)]).toEqual([
        COPIED[test],
        original,
        "passed",
      ]);
      for (const name of copies) {
        const found = statusOf(name);
        expect([COPIED[test], name, ...(inside ? [found.includes("failed")] : found)]).toEqual([
          COPIED[test],
          name,
          inside ? true : "failed",
        ]);
      }
    }
  },
  60_000,
);

test("names are dealt out among a test and its copies, so that none tells which is which", async () => {
  let kept = 0;
  for (let again = 0; again < 12; again++) {
    const [made] = await twinsOf(MODULE, ["test_number"], 3);
    expect(made).toMatchObject({ renamed: true, kinds: ["number"] });
    expect([made?.original, ...(made?.copies ?? [])]).toContain("test_number");
    if (made?.original === "test_number") kept++;
  }
  expect(kept).toBeLessThan(12);
});

/** Claims of which two changes make up for each other, or in which one disappears. */
const MAKE_UP = `from unittest import TestCase
from numpy.testing import assert_allclose


def test_both_sides():
    assert [1, 2] == [1, 2]


def test_sum():
    assert int("7") == 3 + 4


def test_set():
    assert set([1, 2, 3]) == {1, 2, 3}


def test_negated_twice():
    assert (len("a") == 1) == True


def test_tolerance():
    assert_allclose([2.0, 3.0], [2.1, 2.9], rtol=0.5)


class TestTiny(TestCase):
    def test_tiny(self):
        self.assertAlmostEqual(3e-12, 3e-12)

    def test_delta(self):
        self.assertAlmostEqual(5.0, 6.0, delta=20)
`;

test("no copy passes because its changes make up for each other, or are within a tolerance", async () => {
  // The two of the class have an opposite, and no other number; `test_tolerance` has neither.
  const names = [
    ...["test_both_sides", "test_sum", "test_set", "test_negated_twice"],
    ...["TestTiny.test_tiny", "TestTiny.test_delta"],
  ];
  for (let round = 0; round < 12; round++) {
    const twins = await twinsOf(MAKE_UP, [...names, "test_tolerance"], 60);
    expect(twins.map(({ test }) => test).toSorted()).toEqual([...names.keys()]);
    const argv = ["python3", "-m", "pytest", "-rA", "-p", "no:cacheprovider", "test_it.py"];
    const { stdout } = await sandbox.exec(argv, { ...EXEC, cwd: "/tmp/twins" });
    const passed = [...stdout.matchAll(/^PASSED \S+::(\w+)$/gm)].map(([, name]) => name);
    for (const { original, copies } of twins) {
      expect(passed).toContain(original);
      expect(copies.filter((name) => passed.includes(name))).toEqual([]);
    }
  }
});

test("a test that is inherited, or looks at its own name, keeps it", async () => {
  const module = `import unittest


class TestA(unittest.TestCase):
    def test_a(self):
        self.assertEqual(1 + 1, 2)


class TestB(TestA):
    pass


def test_b():
    assert 1 + 1 == 2
`;
  const made = await twinsOf(module, ["TestA.test_a", "test_b"]);
  const [a, b] = made.toSorted((one, other) => one.test - other.test);
  expect([a?.test, a?.renamed, a?.original]).toEqual([0, false, "test_a"]);
  expect([b?.test, b?.renamed]).toEqual([1, true]);
  const named = `${module}\n\ndef test_c(request):\n    assert request.node.name == "test_c"\n`;
  expect((await twinsOf(named, ["test_b"])).map(({ renamed }) => renamed)).toEqual([false]);
});

/** The test's own name, without file, class and parameters. */
function plain(full: string): string {
  return full.split("[")[0]?.split("::").at(-1) ?? "";
}

test("a file that is no Python, or in another encoding, is left as it is", async () => {
  const bytes = Buffer.from('def test_a():\n    assert "caf\xe9" == 1\n', "latin1");
  expect(await twinsOf(bytes, ["test_a"])).toEqual([]);
  expect(Buffer.from(await sandbox.readFile("/tmp/twins/test_it.py", 1000))).toEqual(bytes);
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
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

    def test_kind(self):
        """Has a docstring."""
        self.assertIsInstance(double(1), int)


async def test_skipped_itself():
    pytest.skip("not here")


def test_returns_early():
    if double(1) == 2:
        return
    assert False


def test_asserts_nothing():
    double(1)
`;

const COPIED = [
  ...["test_number", "test_with_parameters", "test_text_of_other_alphabets", "test_nested"],
  ...["test_exception", "test_close", "test_words", "test_last_is_a_loop"],
  ...["TestCases.test_equal", "TestCases.test_list", "TestCases.test_kind"],
];
const LEFT = ["test_skipped_itself", "test_returns_early", "test_asserts_nothing", "test_unknown"];

let bundle: Bundle;
let sandbox: Sandbox;

beforeAll(async () => {
  bundle = await setup("bubblewrap");
  sandbox = await bundle.open();
});
afterAll(() => bundle[Symbol.asyncDispose]());

test.each(["a", "b", "c"])(
  "copies of tests fail where the tests pass, whatever they assert (%s)",
  async (seed) => {
    await sandbox.writeFile("/tmp/twins/test_it.py", MODULE);
    const tests = [...COPIED, ...LEFT].map((known) => {
      const [name, owner = null] = known.split(".").toReversed();
      return { file: "test_it.py", class: owner, name };
    });
    const plan = { seed, folder: "/tmp/twins", files: [], most: 100, docstrings: true, tests };
    const made = await sandbox.exec(["python3", "-I", "-S", "-c", TWINS], {
      ...{ ...EXEC, stdin: JSON.stringify(plan) },
    });
    const twins = JSON.parse(made.stdout) as { test: number; name: string }[];
    expect(twins.map(({ test }) => test).toSorted((a, b) => a - b)).toEqual([...COPIED.keys()]);

    const argv = ["python3", "-m", "pytest", "-rA", "-p", "no:cacheprovider", "test_it.py"];
    const { stdout } = await sandbox.exec(argv, {
      ...{ ...EXEC, cwd: "/tmp/twins", maxOutputBytes: 1 << 20, timeoutMs: 60_000 },
    });
    const statuses = statusesOf(parsePytest(stdout));
    const statusOf = (name: string) =>
      new Set([...statuses].filter(([full]) => plain(full) === name).map(([, status]) => status));
    for (const { test, name } of twins) {
      const known = COPIED[test]?.split(".").at(-1) ?? "";
      expect([name, ...statusOf(name)]).toEqual([name, "failed"]);
      expect([known, ...statusOf(known)]).toEqual([known, "passed"]);
    }
  },
  60_000,
);

/** The test's own name, without file, class and parameters. */
function plain(full: string): string {
  return full.split("[")[0]?.split("::").at(-1) ?? "";
}

test("a file that is no Python, or in another encoding, is left as it is", async () => {
  const bytes = Buffer.from('def test_a():\n    assert "caf\xe9" == 1\n', "latin1");
  await sandbox.writeFile("/tmp/twins/test_it.py", bytes);
  const tests = [{ file: "test_it.py", class: null, name: "test_a" }];
  const plan = { seed: "a", folder: "/tmp/twins", files: [], most: 4, docstrings: true, tests };
  const { stdout } = await sandbox.exec(["python3", "-I", "-S", "-c", TWINS], {
    ...{ ...EXEC, stdin: JSON.stringify(plan) },
  });
  expect(stdout).toBe("[]\n");
  expect(Buffer.from(await sandbox.readFile("/tmp/twins/test_it.py", 1000))).toEqual(bytes);
});

/**
 * Two releases of a package that lie next to each other. The row's base is the earlier one; its solution and its tests are
 * the difference to the later one, as upstream released it. So rows are real changes of real repositories, tested by
 * upstream's own tests with the published harnesses' commands; they are not the published rows, whose commits lie
 * between two releases.
 */
export type RowSource = {
  id: string;
  repo: string;
  package: string;
  before: string;
  after: string;
  /** Folders or modules of the source, from the repository. */
  sources: string[];
  /** Test files that the row runs. */
  tests: string[];
  /** Wheels that the tests need besides what the package itself needs. */
  needs: string[];
  /** Files of the repository that its releases leave out. */
  extra?: Record<string, string>;
  /** Where the published harnesses know no command for the repository. */
  test_cmd?: string;
  log_parser?: string;
};

/** As SymPy's repository has it, with the flags that the harness gives it. */
const SYMPY_RUNNER = `#!/usr/bin/env python3
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
parser = argparse.ArgumentParser()
parser.add_argument("-C", dest="colors", action="store_false")
parser.add_argument("--verbose", action="store_true")
parser.add_argument("paths", nargs="*")
given = parser.parse_args()
from sympy.testing.runtests import test

sys.exit(0 if test(*given.paths, verbose=given.verbose, colors=given.colors) else 1)
`;

const plain = { test_cmd: "pytest -rA", log_parser: "pytest" };

export const ROWS: RowSource[] = [
  {
    ...{ id: "django__django-4.2.2", repo: "django/django", package: "django" },
    ...{ before: "4.2.1", after: "4.2.2", sources: ["django"], tests: ["tests/*.py"], needs: [] },
  },
  {
    ...{ id: "django__django-4.2.7", repo: "django/django", package: "django" },
    ...{ before: "4.2.6", after: "4.2.7", sources: ["django"], tests: ["tests/*.py"], needs: [] },
  },
  {
    ...{ id: "django__django-5.0.2", repo: "django/django", package: "django" },
    ...{ before: "5.0.1", after: "5.0.2", sources: ["django"], tests: ["tests/*.py"], needs: [] },
  },
  {
    ...{ id: "sympy__sympy-1.13.1", repo: "sympy/sympy", package: "sympy" },
    ...{ before: "1.13.0", after: "1.13.1", sources: ["sympy"], tests: ["sympy/*/tests/*.py"] },
    ...{ needs: ["hypothesis"], extra: { "bin/test": SYMPY_RUNNER } },
  },
  {
    ...{ id: "sympy__sympy-1.12.1", repo: "sympy/sympy", package: "sympy" },
    ...{ before: "1.12", after: "1.12.1", sources: ["sympy"], tests: ["sympy/*/tests/*.py"] },
    ...{ needs: ["hypothesis"], extra: { "bin/test": SYMPY_RUNNER } },
  },
  {
    ...{ id: "pallets__flask-2.3.2", repo: "pallets/flask", package: "flask" },
    ...{ before: "2.3.1", after: "2.3.2", sources: ["src/flask"], tests: ["tests/*.py"] },
    needs: ["pytest<8", "werkzeug<3", "asgiref"],
  },
  {
    ...{ id: "marshmallow-code__marshmallow-3.16.0", repo: "marshmallow-code/marshmallow" },
    ...{ package: "marshmallow", before: "3.15.0", after: "3.16.0" },
    ...{ sources: ["src/marshmallow"], tests: ["tests/*.py"] },
    needs: ["pytest<8", "pytz", "simplejson"],
  },
  {
    ...{ id: "python-markdown__markdown-3.4.2", repo: "Python-Markdown/markdown" },
    ...{ package: "markdown", before: "3.4.1", after: "3.4.2", sources: ["markdown"] },
    ...{ tests: ["tests/*.py"], needs: ["pyyaml"] },
    ...{ test_cmd: "python3 -m unittest -v", log_parser: "unittest" },
  },
  {
    ...{ id: "pallets__jinja-3.1.3", repo: "pallets/jinja", package: "jinja2" },
    ...{ before: "3.1.2", after: "3.1.3", sources: ["src/jinja2"], tests: ["tests/*.py"] },
    ...{ needs: ["pytest<8"], ...plain },
  },
  {
    ...{ id: "andialbrecht__sqlparse-0.4.4", repo: "andialbrecht/sqlparse", package: "sqlparse" },
    ...{ before: "0.4.3", after: "0.4.4", sources: ["sqlparse"], tests: ["tests/*.py"] },
    ...{ needs: ["pytest<8"], ...plain },
  },
  {
    ...{ id: "pallets__click-8.1.4", repo: "pallets/click", package: "click" },
    ...{ before: "8.1.3", after: "8.1.4", sources: ["src/click"], tests: ["tests/*.py"] },
    ...{ needs: ["pytest<8"], ...plain },
  },
  {
    ...{ id: "mahmoud__boltons-24.1.0", repo: "mahmoud/boltons", package: "boltons" },
    ...{ before: "24.0.0", after: "24.1.0", sources: ["boltons"], tests: ["tests/*.py"] },
    ...{ needs: ["pytest<8"], ...plain },
  },
  {
    ...{ id: "pypa__packaging-23.2", repo: "pypa/packaging", package: "packaging" },
    ...{ before: "23.1", after: "23.2", sources: ["src/packaging"], tests: ["tests/*.py"] },
    ...{ needs: ["pytest<8", "pretend"], ...plain },
  },
  {
    ...{ id: "python-markdown__markdown-3.5.1", repo: "Python-Markdown/markdown" },
    ...{ package: "markdown", before: "3.5", after: "3.5.1", sources: ["markdown"] },
    ...{ tests: ["tests/*.py"], needs: ["pyyaml"] },
    ...{ test_cmd: "python3 -m unittest -v", log_parser: "unittest" },
  },
  {
    ...{ id: "andialbrecht__sqlparse-0.5.1", repo: "andialbrecht/sqlparse", package: "sqlparse" },
    ...{ before: "0.5.0", after: "0.5.1", sources: ["sqlparse"], tests: ["tests/*.py"] },
    ...{ needs: ["pytest<8"], ...plain },
  },
  {
    ...{ id: "mahmoud__boltons-24.0.0", repo: "mahmoud/boltons", package: "boltons" },
    ...{ before: "23.1.1", after: "24.0.0", sources: ["boltons"], tests: ["tests/*.py"] },
    ...{ needs: ["pytest<8"], ...plain },
  },
  {
    ...{ id: "pallets__jinja-3.1.5", repo: "pallets/jinja", package: "jinja2" },
    ...{ before: "3.1.4", after: "3.1.5", sources: ["src/jinja2"], tests: ["tests/*.py"] },
    ...{ needs: ["pytest<8", "trio"], ...plain },
  },
];

import type { LogFormatName } from "../../verifiers/tests/formats.ts";

/** How a repository's tests are run and read, as the benchmarks' harnesses do it. */
export type Suite = {
  format: LogFormatName;
  command(version: string): string;
  /** What the runner is given for a test file. */
  target?(path: string): string;
  /** What it is given instead of files; null where it is files after all. */
  select?(testPatch: string): string[] | null;
};

const PYTEST = "pytest -rA";

const pytest = (format: LogFormatName = "pytest", command = PYTEST): Suite => ({
  format,
  command: () => command,
});

/** Source: the test commands of SWE-bench's and SWE-Gym's harnesses. */
const SUITES: Record<string, Suite> = {
  "astropy/astropy": {
    format: "pytest-v2",
    command: (version) =>
      /^[01]\./.test(version) ? "pytest -rA -vv -o console_output_style=classic --tb=no" : PYTEST,
  },
  "django/django": {
    format: "unittest",
    command: (version) =>
      version === "1.9"
        ? "./tests/runtests.py --verbosity 2"
        : "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1",
    target: (path) =>
      path
        .replace(/\.py$/, "")
        .replace(/^tests\//, "")
        .replaceAll("/", "."),
  },
  "matplotlib/matplotlib": pytest("matplotlib"),
  "marshmallow-code/marshmallow": pytest(),
  "mwaskom/seaborn": pytest("seaborn", "pytest --no-header -rA"),
  "pallets/flask": pytest(),
  "psf/requests": pytest("pytest-options"),
  "pvlib/pvlib-python": pytest(),
  "pydata/xarray": pytest(),
  "pydicom/pydicom": pytest("pytest-options"),
  "pylint-dev/astroid": pytest(),
  "pylint-dev/pylint": pytest("pytest-options"),
  "pytest-dev/pytest": pytest(),
  "pyvista/pyvista": pytest(),
  "scikit-learn/scikit-learn": pytest("pytest-v2"),
  "sphinx-doc/sphinx": pytest("pytest-v2", "tox --current-env -epy39 -v --"),
  "sqlfluff/sqlfluff": pytest(),
  "sympy/sympy": pytest(
    "sympy",
    "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose",
  ),
  "bokeh/bokeh": pytest("pytest", "pytest -rA -n0"),
  "conan-io/conan": pytest("pytest", 'PYTHONPATH="$PYTHONPATH:$PWD" pytest -n0 -rA'),
  "dask/dask": pytest("pytest", "pytest -n0 -rA --color=no"),
  "facebookresearch/hydra": pytest("pytest", "pytest -rA --tb=long"),
  "getmoto/moto": pytest("pytest", "pytest -n0 -rA"),
  "iterative/dvc": pytest("pytest", PYTEST),
  "modin-project/modin": pytest("pytest", "pytest -n0 -rA"),
  "pandas-dev/pandas": pytest("pytest", "pytest -rA --tb=long"),
  "project-monai/monai": pytest("pytest", PYTEST),
  "pydantic/pydantic": pytest(
    "pytest-either-end",
    "pytest -rA --tb=short -vv -o console_output_style=classic --no-header",
  ),
  "python/mypy": {
    format: "pytest",
    command: (version) => (/^1\.([789]|1\d)/.test(version) ? PYTEST : "pytest -n0 -rA"),
    // Most of its tests are cases in data files, which are chosen by name.
    select(testPatch) {
      const cases = [...testPatch.matchAll(/\[case ([^[\]\n]+)\]/g)].map(([, name = ""]) => name);
      return cases.length === 0 ? null : ["-k", cases.join(" or ")];
    },
  },
};

/** Null for a repository that no harness here knows. */
export function suiteOf(repo: string): Suite | null {
  const key = repo.toLowerCase();
  return Object.hasOwn(SUITES, key) ? (SUITES[key] ?? null) : null;
}

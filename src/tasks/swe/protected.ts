import type { PatchFile } from "./patch.ts";

/**
 * Files by which a change would decide its own verdict: they stay as the row has them. Base names and folders,
 * in any folder of the repository.
 */
const DECIDING_NAMES = new Set([
  // What pytest, coverage, tox and nose read before any test.
  ...["conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini"],
  ...["setup.cfg", "pyproject.toml", ".coveragerc", "noxfile.py", "runtests.py"],
  // What Python runs at its start, or finds instead of its own modules and of the runner's.
  ...["sitecustomize.py", "usercustomize.py", "_pytest", "pytest.py", "pluggy", "pluggy.py"],
  ...["iniconfig", "iniconfig.py", "unittest.py", "site.py", "pyvenv.cfg"],
  // What git, make and the JavaScript runners read.
  ...[".gitattributes", ".gitmodules", ".gitconfig", "karma.conf.js", "karma.conf.cjs"],
  ...[".mocharc.js", ".mocharc.json", ".mocharc.yml", ".mocharc.cjs", "jasmine.json"],
]);

const DECIDING_PATTERNS = [
  /\.pth$/,
  /\.(egg|dist)-info(\/|$)/,
  /(^|\/)(jest|vitest|vite|ava|playwright|cypress)\.config\.[cm]?[jt]s$/,
  // Tests themselves, by the usual names.
  /^(test|testing|spec|r2e_tests)\//,
  /(^|\/)(tests|__tests__|__mocks__)\//,
  /(^|\/)test_[^/]*\.py$/,
  /(^|\/)[^/]*_tests?\.py$/,
  /(^|\/)tests?\.py$/,
  /\.(test|spec)\.[cm]?[jt]sx?$/,
];

/** What a row says about its own files. */
export type RowFiles = {
  /** Paths of the row's own solution: what it changes a solution may change. */
  solution: ReadonlySet<string>;
  /** Paths of its tests. */
  tests: ReadonlySet<string>;
};

export type Left = { path: string; why: "test" | "deciding" | "link" | "submodule" | "binary" };

/** The files of a patch that are applied, and those that are left out, with the reason. */
export function applicable(
  files: readonly PatchFile[],
  row: RowFiles,
): { apply: PatchFile[]; left: Left[] } {
  const apply: PatchFile[] = [];
  const left: Left[] = [];
  for (const file of files) {
    const why = leaveOut(file, row);
    if (why === null) apply.push(file);
    else left.push({ path: file.path, why });
  }
  return { apply, left };
}

function leaveOut({ path, from = path, kind }: PatchFile, row: RowFiles): Left["why"] | null {
  if (row.tests.has(path) || row.tests.has(from)) return "test";
  if (kind !== "text") return kind;
  return [path, from].every((name) => row.solution.has(name) || !decides(name)) ? null : "deciding";
}

function decides(path: string): boolean {
  return (
    path.split("/").some((part) => DECIDING_NAMES.has(part)) ||
    DECIDING_PATTERNS.some((pattern) => pattern.test(path))
  );
}

/**
 * Code that makes a comparison true whatever it compares, which no test can tell from an answer. As lines that
 * a patch adds.
 */
const ALWAYS_EQUAL =
  /^\+[ \t]*def __(?:eq|req|instancecheck)__\(.*\).*:[ \t]*(?:(?:#.*)?\n(?:\+[ \t]*(?:#.*|"""[^"\n]*""")?\n)*\+[ \t]*)?return (?:True|1|not False)\b/m;
const ALWAYS_EQUAL_LAMBDA =
  /^\+.*__(?:eq|ne)__["']?[ \t]*[=:,][ \t]*lambda[^:\n]*:[ \t]*(?:True|False|1|0)\b/m;

/** Whether a patch adds a class that is equal to everything, which the row's own solution does not. */
export function addsAlwaysEqual(patch: string, solution: string): boolean {
  const found = (text: string) => ALWAYS_EQUAL.test(text) || ALWAYS_EQUAL_LAMBDA.test(text);
  return found(patch) && !found(solution);
}

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
  ...["sitecustomize.py", "usercustomize.py", "pytest.py", "pluggy.py"],
  ...["iniconfig.py", "unittest.py", "site.py", "pyvenv.cfg"],
  // What git, make and the JavaScript runners read.
  ...[".gitattributes", ".gitmodules", ".gitconfig", "karma.conf.js", "karma.conf.cjs"],
  ...[".mocharc.js", ".mocharc.json", ".mocharc.yml", ".mocharc.cjs", "jasmine.json"],
]);

const DECIDING_PATTERNS = [
  /\.pth$/,
  /\.(egg|dist)-info(\/|$)/,
  // Interpreters, runners and what is installed beside the repository.
  /(^|\/)(\.?venv|\.tox|\.nox|site-packages|dist-packages|node_modules)\//,
  /(^|\/)bin\/(python|pip|pytest|py\.test|tox|nox|coverage|activate)[^/]*$/,
  /(^|\/)(bin|scripts|tools|ci)\/([^/]*_)?(test|tests|doctest)(\.\w+)?$/,
  /(^|\/)run_?tests?(\.\w+)?$/,
  /(^|\/)(jest|vitest|vite|ava|playwright|cypress)\.config\.[cm]?[jt]s$/,
  // Tests themselves, by the usual names.
  /^(test|testing|spec|r2e_tests)\//,
  /(^|\/)(tests|__tests__|__mocks__)\//,
  /(^|\/)test_[^/]*\.py$/,
  /(^|\/)[^/]*_tests?\.py$/,
  /(^|\/)tests?\.py$/,
  /\.(test|spec)\.[cm]?[jt]sx?$/,
];

/**
 * Folders of a runner, or of what tests are built on, that lies in the repository. Where the row's own solution changes a
 * file of such a folder, the folder is what the row is about.
 */
const RUNNER_FOLDERS = [
  /^(?:.*\/)?(?:_?testing|test_?utils?|_pytest|pluggy|iniconfig)\//,
  /^(?:.*\/)?test\/(?=(?:runner|testcases|simple|utils|signals)\.py$)/,
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
  return [path, from].every((name) => !decides(name, row.solution)) ? null : "deciding";
}

function runnerFolder(path: string): string | null {
  for (const pattern of RUNNER_FOLDERS) {
    const found = pattern.exec(path)?.[0];
    if (found !== undefined) return found;
  }
  return null;
}

function decides(path: string, solution: ReadonlySet<string>): boolean {
  if (solution.has(path)) return false;
  const folder = runnerFolder(path);
  const foreign = folder !== null && ![...solution].some((name) => runnerFolder(name) === folder);
  return (
    foreign ||
    path.split("/").some((part) => DECIDING_NAMES.has(part)) ||
    DECIDING_PATTERNS.some((pattern) => pattern.test(path))
  );
}

/** A line that begins a method which compares. Blanks are Python's: a lone carriage return ends a line there. */
const COMPARES = /^\+[ \t\r\f]*def __(?:eq|req|instancecheck)__\(/;
const RETURNS_TRUE = /^\+[ \t\r\f]*return (?:True|1|not False)\b/;
const RETURNS_TRUE_AT_ONCE = /:[ \t\r\f]*return (?:True|1|not False)\b/;
const BODY_FOLLOWS = /:[ \t\r\f]*(?:#[^\n]*)?$/;
const SAYS_NOTHING = /^\+[ \t\r\f]*(?:#[^\n]*|"""[^"]*"""\r?)?$/;
const COMPARES_BY_LAMBDA = /__(?:eq|ne)__["']?[ \t]*[=:,][ \t]*lambda/g;
const CONSTANT = /[ \t]*(?:True|False|1|0)\b/y;

/**
 * Whether a patch adds code that makes a comparison true whatever it compares, which no test can tell from an answer,
 * and which the row's own solution does not add. Takes time linear in the patch, whose lines may be a megabyte long.
 */
export function addsAlwaysEqual(patch: string, solution: string): boolean {
  return hasAlwaysEqual(patch) && !hasAlwaysEqual(solution);
}

function hasAlwaysEqual(patch: string): boolean {
  const lines = patch.split("\n");
  return lines.some((line, index) => {
    if (!line.startsWith("+")) return false;
    if (comparesByConstant(line)) return true;
    if (!COMPARES.test(line)) return false;
    if (RETURNS_TRUE_AT_ONCE.test(line)) return true;
    if (!BODY_FOLLOWS.test(line)) return false;
    let at = index + 1;
    while (SAYS_NOTHING.test(lines[at] ?? "")) at++;
    return RETURNS_TRUE.test(lines[at] ?? "");
  });
}

function comparesByConstant(line: string): boolean {
  let colon = -1;
  for (const { index, 0: found } of line.matchAll(COMPARES_BY_LAMBDA)) {
    const end = index + found.length;
    // Several may be followed by the same one, which is looked at once.
    if (colon >= end) continue;
    colon = line.indexOf(":", end);
    if (colon < 0) return false;
    CONSTANT.lastIndex = colon + 1;
    if (CONSTANT.test(line)) return true;
  }
  return false;
}

import type { TestLine, TestStatus } from "./status.ts";

const ENDINGS: [ending: RegExp, status: TestStatus][] = [
  [/ \.\.\. {1,2}(?:ok|OK)$/, "passed"],
  [/ \.\.\. skipped.*$/, "skipped"],
  [/ \.\.\. FAIL$/, "failed"],
  [/ \.\.\. ERROR$/, "error"],
  [/ \.\.\. expected failure$/, "xfail"],
];

/**
 * unittest's verbose runner and Django's, which is built on it: `test_x (module.Class) ... ok`. A test with a
 * docstring is named by the docstring, as the benchmark's lists name it. What is printed between the dots and
 * the `ok` puts that on a line of its own. The headings of the failures count for every name that the test
 * may have, so that no `ok` that a test prints itself outweighs them.
 */
export function parseUnittest(log: string): TestLine[] {
  const lines: TestLine[] = [];
  const add = (name: string, status: TestStatus) => lines.push({ name, status, line: name });
  let open: string | null = null;
  let heading: TestStatus | null = null;
  for (const raw of log.split("\n")) {
    const line = raw.trim();
    if (heading !== null && !line.startsWith("-----")) add(line, heading);
    heading = null;
    // This test prints in the midst of its own line.
    if (line.includes("--version is equivalent to version")) {
      add("--version is equivalent to version", "passed");
    }
    if (line.includes(" ... ")) open = line.split(" ... ")[0] ?? null;
    for (const [ending, status] of ENDINGS) {
      const found = ending.exec(line);
      if (found) add(withoutMigration(line.slice(0, found.index)), status);
    }
    const [, kind, full, name] = /^(FAIL|ERROR): ((\S+).*)$/.exec(line) ?? [];
    if (name && full) {
      heading = kind === "FAIL" ? "failed" : "error";
      add(name, heading);
      if (full !== name) add(full, heading);
    }
    if (line.startsWith("ok") && open !== null) add(open, "passed");
  }
  return lines;
}

/** A migration that announces itself without a line's end before a test's name. */
function withoutMigration(name: string): string {
  const announced = "Applying sites.0002_alter_domain_unique...test_no_migrations";
  return name.startsWith(announced) ? name.slice(name.indexOf("...") + 3).trim() : name;
}

/** A heading is 80 wide, or what its name needs. */
const MAX_HEADING = 500;

/** SymPy's own runner, verbose: `test_x ok`, ` F`, ` E`; a failure's heading is `____ path.py:test ____`. */
export function parseSympy(log: string): TestLine[] {
  return log.split("\n").flatMap((raw): TestLine[] => {
    const line = raw.trim();
    if (line.startsWith("_") && line.length <= MAX_HEADING) {
      const name = /^_+ (.*\.py:.*?) _+$/.exec(line)?.[1];
      return name ? [{ name, status: "failed", line: name }] : [];
    }
    if (!line.startsWith("test_")) return [];
    // A file's last test shares its line with the file's result.
    const letter = / (ok|F|E)(?:\s+\[(?:OK|FAIL)\])?$/.exec(line.slice(-100))?.[1];
    const status = letter === undefined ? undefined : SYMPY_LETTERS[letter];
    const name = line.split(" ", 1)[0] ?? "";
    return status ? [{ name, status, line: name }] : [];
  });
}

const SYMPY_LETTERS: Record<string, TestStatus> = { ok: "passed", F: "failed", E: "error" };

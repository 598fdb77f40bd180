import type { TestLine, TestStatus } from "./status.ts";

type Tree = {
  /** The test that a line without its indentation is about; null for a suite's name. */
  test(line: string): { name: string; status: TestStatus } | null;
  /** Between the names of the suites and the test's. */
  join: string;
};

/** Runners that print suites as an indented tree: a test is named with all that it stands below. */
export function indented(log: string, { test, join }: Tree): TestLine[] {
  const suites: { name: string; indent: number }[] = [];
  return log.split("\n").flatMap((line) => {
    const text = line.trim();
    const found = test(text);
    if (found) {
      const name = [...suites.map((suite) => suite.name), found.name].join(join).trim();
      return [{ name, status: found.status, line: name }];
    }
    const indent = line.length - line.trimStart().length;
    if (indent === 0 || text === "") return [];
    while ((suites.at(-1)?.indent ?? -1) >= indent) suites.pop();
    suites.push({ name: text, indent });
    return [];
  });
}

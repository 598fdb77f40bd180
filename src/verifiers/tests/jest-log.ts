import { indented } from "./indent.ts";
import { type TestLine, type TestStatus, withoutEscapes } from "./status.ts";

const SIGNS: Record<string, TestStatus> = {
  "✓": "passed",
  "√": "passed",
  "✕": "failed",
  "×": "failed",
  "○": "skipped",
  "↓": "skipped",
};

/** `jest --verbose`: `✓ name (3 ms)`. Equal names of different suites can't be told apart. */
export function parseJest(log: string): TestLine[] {
  return signed(log, /^(✓|✕|○)\s(.+?)(?:\s\(\d+(?:\.\d+)?\s*m?s\))?$/);
}

/** `vitest --reporter=verbose`: `✓ file > suite > name 3ms`. */
export function parseVitest(log: string): TestLine[] {
  return signed(log, /^(✓|×|↓)\s(.+?)(?:\s(?:\d+\s*m?s?|\[skipped\]))?$/);
}

function signed(log: string, pattern: RegExp): TestLine[] {
  return withoutEscapes(log)
    .split("\n")
    .flatMap((line) => {
      const [, sign = "", name = ""] = pattern.exec(line.trim()) ?? [];
      const status = SIGNS[sign];
      return status ? [{ name: name.trim(), status, line: name.trim() }] : [];
    });
}

/** `jest --json`, reduced to `[PASSED] suite name` by the row's own command. */
export function parseJestJson(log: string): TestLine[] {
  return log.split("\n").flatMap((line) => {
    const [, word, name = ""] = /^\[(PASSED|FAILED)\]\s(.+)$/.exec(line.trim()) ?? [];
    return word ? [{ name, status: word === "PASSED" ? "passed" : "failed", line: name }] : [];
  });
}

/** Jest without `--verbose` names files: `PASS src/a.test.js (5.1 s)`. */
export function parseJestFiles(log: string): TestLine[] {
  return withoutEscapes(log)
    .split("\n")
    .flatMap((line) => {
      const [, word, name = ""] =
        /^(PASS|FAIL)\s(.*?)(?:\s\([\d.]+\s?m?s\))?$/.exec(line.trimEnd()) ?? [];
      const file = name.trim();
      if (!word || file === "") return [];
      return [{ name: file, status: word === "PASS" ? "passed" : "failed", line: file }];
    });
}

/** Calypso's: Jest's tree after each call of Jest, `suite - suite - name`. */
export function parseCalypso(log: string): TestLine[] {
  return log
    .split(" ./node_modules/.bin/jest ")
    .slice(1)
    .flatMap((run) => {
      const end = run.split("\n").findIndex((line) => /^(Test Suites| {2}● )/.test(line));
      const tree = end < 0 ? run : run.split("\n").slice(0, end).join("\n");
      return indented(tree, {
        test: (line) => {
          const [, sign = "", name = ""] = /^(✓|✕)\s(.*?)(?:\(\d+ms\))?$/.exec(line) ?? [];
          const status = SIGNS[sign];
          return status ? { name: name.trim(), status } : null;
        },
        join: " - ",
      });
    });
}

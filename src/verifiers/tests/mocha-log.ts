import { indented } from "./indent.ts";
import { type TestLine, type TestStatus, withoutEscapes } from "./status.ts";

const DURATION = /\s*\(\d+m?s\)$/;

/** Mocha's `spec` reporter as Highlight.js has it: `suite.name`, up to the summary. */
export function parseMochaSpec(log: string): TestLine[] {
  const tree = withoutEscapes(log).split(/\n[ \t]*\d+ passing/)[0] ?? "";
  let suite = "";
  return tree.split("\n").flatMap((line) => {
    const found = mochaTest(line.trim());
    if (!found) {
      // Only the innermost suite is part of the name.
      if (line.startsWith("  ") && line.trim() !== "") suite = line.trim();
      return [];
    }
    const name = suite === "" ? found.name : `${suite}.${found.name}`;
    return [{ name, status: found.status, line: name }];
  });
}

/** Lighthouse's, Mocha in several runs: `suite - suite - name`. */
export function parseMochaRuns(log: string): TestLine[] {
  return withoutEscapes(log)
    .split(/running\s\d+\stest\sfiles/)
    .slice(1)
    .flatMap((run) => {
      const tree = run.split(/\d+\spassing/)[0] ?? "";
      return indented(tree, { test: mochaTest, join: " - " });
    });
}

function mochaTest(line: string): { name: string; status: TestStatus } | null {
  const [, sign, text = ""] = /^(✓|✔|\d+\))\s*(.*)$/.exec(line) ?? [];
  if (sign === undefined) return null;
  const status = sign === "✓" || sign === "✔" ? "passed" : "failed";
  return { name: text.replace(DURATION, "").trim(), status };
}

/** Mocha's `json` reporter, once or several times in a log. */
export function parseMochaJson(log: string): TestLine[] {
  return jsonObjects(log).flatMap((run) => [
    ...titles(run.passes, "passed"),
    ...titles(run.failures, "failed"),
  ]);
}

function titles(tests: unknown, status: TestStatus): TestLine[] {
  if (!Array.isArray(tests)) return [];
  return tests.flatMap((test: { fullTitle?: unknown }) => {
    const name = test?.fullTitle;
    return typeof name === "string" ? [{ name, status, line: name }] : [];
  });
}

/** Objects that begin and end with a line of their own; what can't be read is none. */
function jsonObjects(log: string): Record<string, unknown>[] {
  return log.split(/^(?=\{\s*$)/m).flatMap((part) => {
    const end = /^\}/m.exec(part);
    if (!part.startsWith("{") || !end) return [];
    try {
      return [JSON.parse(part.slice(0, end.index + 1)) as Record<string, unknown>];
    } catch {
      return [];
    }
  });
}

/** Mocha's failures, as ESLint's tests print them: what stands before the line with the error. */
export function parseMochaFailures(log: string): TestLine[] {
  return numbered(log).flatMap((block) => {
    const end = block.findIndex((line) => line.includes("Error"));
    return end < 0 ? [] : failed(block.slice(0, end).join(" "));
  });
}

/** p5.js: numbered failures whose suites and name are indented more and more, up to a colon. */
export function parseNestedFailures(log: string): TestLine[] {
  return numbered(log).flatMap((block) => {
    const end = block.findIndex((line) => line.includes(":"));
    const lines = block.slice(0, end + 1).map((line) => line.split(":")[0] ?? "");
    const indents = lines.slice(1).map((line) => line.length - line.trimStart().length);
    const nested = indents.every((indent, at) => indent > (indents[at - 1] ?? 0));
    return lines.length > 0 && nested ? failed(lines.map((line) => line.trim()).join(":")) : [];
  });
}

/** Jasmine: `1) name` at the beginning of a line. */
export function parseJasmineFailures(log: string): TestLine[] {
  return withoutEscapes(log)
    .split("\n")
    .flatMap((line) => failed(/^\d+\)\s(.*)/.exec(line)?.[1] ?? ""));
}

/** Suites are not nested deeper, and the error follows them. */
const MAX_BLOCK_LINES = 30;

/** What follows `1)`, as lines: up to the next number, and never longer than names are. */
export function numbered(log: string): string[][] {
  const blocks: string[][] = [];
  for (const line of withoutEscapes(log).split("\n")) {
    const first = /^\s*\d+\)(.*)$/.exec(line)?.[1];
    if (first !== undefined) blocks.push([first]);
    else if ((blocks.at(-1)?.length ?? MAX_BLOCK_LINES) < MAX_BLOCK_LINES)
      blocks.at(-1)?.push(line);
  }
  return blocks;
}

/** A failed test, its name on one line with single blanks. */
export function failed(text: string): TestLine[] {
  const name = oneLine(text);
  return name === "" ? [] : [{ name, status: "failed", line: name }];
}

export function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

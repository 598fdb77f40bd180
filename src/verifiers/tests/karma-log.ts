import { indented } from "./indent.ts";
import { failed, numbered } from "./mocha-log.ts";
import { type TestLine, withoutEscapes } from "./status.ts";

/** Karma's mocha reporter, from the browser's start to the summary: `suite > suite > name`. */
export function parseKarma(log: string): TestLine[] {
  const text = withoutEscapes(log);
  const begin = /^.*Starting browser.*$/m.exec(text);
  if (!begin) return [];
  const tree = text.slice(begin.index + begin[0].length).split(/^SUMMARY:/m)[0] ?? "";
  return indented(tree, { test: (line) => signed(line, "✔", "✖"), join: " > " });
}

/** Alibaba's Next: as `parseKarma`, in several runs of a browser, joined by ` - `. */
export function parseKarmaRuns(log: string): TestLine[] {
  return withoutDifferences(withoutEscapes(log))
    .split(" xvfb-run ")
    .slice(1)
    .flatMap((run) => {
      const tree = (run.split("Starting browser Chrome").at(-1) ?? "").split(/^TOTAL/m)[0] ?? "";
      const lines = tree.split("\n").filter((line) => !/^\s*(ERROR|LOG|WARN|Check|in)/.test(line));
      return indented(lines.join("\n"), { test: (line) => signed(line, "✓", "✗"), join: " - " });
    });
}

/** Without what differs where a test failed, up to an empty line, in which other signs may stand. */
function withoutDifferences(text: string): string {
  const begins = /AssertionError:\s+#/g;
  const kept: string[] = [];
  let from = 0;
  for (let begin = begins.exec(text); begin; begin = begins.exec(text)) {
    const end = text.indexOf("\n\n", begins.lastIndex);
    if (end < 0) break;
    kept.push(text.slice(from, begin.index));
    from = end + 2;
    begins.lastIndex = from;
  }
  return kept.join("") + text.slice(from);
}

function signed(line: string, passed: string, failed: string) {
  const [, sign, name = ""] = /^([✓✔✗✖])\s*(.*)$/.exec(line) ?? [];
  if (sign === passed) return { name, status: "passed" as const };
  return sign === failed ? { name, status: "failed" as const } : null;
}

/** Karma's dots and progress reporters name what failed: `Chrome 1.2 (Linux x86_64) suite name FAILED`. */
export function parseKarmaFailures(log: string): TestLine[] {
  return withoutEscapes(log)
    .split("\n")
    .flatMap((line) =>
      failed(/^\s*[A-Z][A-Za-z ]* [\d.]+ \([^)]*\) (.*)FAILED$/.exec(line)?.[1] ?? ""),
    );
}

/** OpenLayers: Karma's and Mocha's failures, and pictures that differ. */
export function parseOpenLayers(log: string): TestLine[] {
  const mocha = numbered(log).flatMap((block) => {
    const end = block.findIndex((line) => line.includes("Error:"));
    if (end < 0) return [];
    const last = (block[end] ?? "").split("Error:")[0] ?? "";
    return failed([...block.slice(0, end), last].join(" "));
  });
  const pictures = log
    .split("\n")
    .flatMap((line) => failed(/^case\s(.*):\smismatch/.exec(line)?.[1] ?? ""));
  return [...parseKarmaFailures(log), ...mocha, ...pictures];
}

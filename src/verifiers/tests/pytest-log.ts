import { statusOfWord, type TestLine, withoutEscapes } from "./status.ts";

const SUMMARY_LINE = /^(PASSED|FAILED|ERROR|SKIPPED|XFAIL)\s/;

/** `SKIPPED [2] path:3: reason` counts tests and names none. */
const SKIP_COUNT = /^\[\d+\]$/;

/** The short summary of `pytest -rA`: `FAILED path::test[id] - message`. Names end at the first blank. */
export function parsePytest(log: string): TestLine[] {
  return summaryLines(log, (name) => name);
}

/** As `parsePytest`; of a path as parameter only the last part stays: `test[/a/b/c]` is `test[/c]`. */
export function parsePytestOptions(log: string): TestLine[] {
  return summaryLines(log, (name) => {
    const [open, close] = [name.indexOf("["), name.lastIndexOf("]")];
    if (open < 0 || close < open) return name;
    const [main, option] = [name.slice(0, open), name.slice(open + 1, close)];
    const isPath = option.startsWith("/") && !option.startsWith("//") && !option.includes("*");
    return `${main}[${isPath ? `/${option.split("/").at(-1)}` : option}]`;
  });
}

/** As `parsePytest`, with the names of mouse buttons as older versions of Matplotlib's tests had them. */
export function parseMatplotlib(log: string): TestLine[] {
  const named = log.replaceAll("MouseButton.LEFT", "1").replaceAll("MouseButton.RIGHT", "3");
  return parsePytest(named);
}

/**
 * Names with blanks, colours, and the lines of versions that print the status last (`path::test PASSED`).
 */
export function parsePytestV2(log: string): TestLine[] {
  return log.split("\n").flatMap((raw) => {
    const line = withoutControl(raw.replace(/\[(\d+)m/g, ""));
    if (SUMMARY_LINE.test(line)) {
      const [first, ...rest] = (line.startsWith("FAILED") ? beforeMessage(line) : line)
        .trim()
        .split(/\s+/);
      if (first === "SKIPPED" && SKIP_COUNT.test(rest[0] ?? "")) return [];
      return lineOf(first, rest.join(" "), line);
    }
    const words = line.trim().split(/\s+/);
    if (words.length < 2) return [];
    return lineOf(words.at(-1), words.slice(0, -1).join(" "), line);
  });
}

/** Pydantic's, in SWE-Gym: short names as `parsePytest`, and statuses that stand last. */
export function parsePytestEitherEnd(log: string): TestLine[] {
  return withoutEscapes(log)
    .split("\n")
    .flatMap((line) => {
      const words = line.trim().split(/\s+/);
      if (SUMMARY_LINE.test(line)) return shortLine(line, (name) => name);
      const [name = ""] = words;
      return name.includes("::") ? lineOf(words.at(-1), name, words.slice(0, -1).join(" ")) : [];
    });
}

/** Progress lines with `-v`: `path::test PASSED [ 50%]`, or `[gw0] PASSED path::test` of several workers. */
export function parsePytestProgress(log: string): TestLine[] {
  return withoutEscapes(log)
    .split("\n")
    .flatMap((line) => {
      const [, name, word] = /^(\S+)\s+(PASSED|FAILED|ERROR|SKIPPED|XFAIL)\b/.exec(line) ?? [];
      if (name !== undefined && !name.startsWith("[gw")) return lineOf(word, name, name);
      const [, by, test] =
        /^\[gw\d+\].*?\s(PASSED|FAILED|ERROR|SKIPPED|XFAIL)\s(\S+)/.exec(line) ?? [];
      return lineOf(by, test ?? "", test ?? "");
    });
}

/** Seaborn's: `path::test PASSED [ 1%]`, `PASSED path::test` and `FAILED path::test`. */
export function parseSeaborn(log: string): TestLine[] {
  return log.split("\n").flatMap((line) => {
    const [first, second] = line.trim().split(/\s+/);
    if (first === undefined || second === undefined) return [];
    if (/^(PASSED|FAILED)/.test(line)) return lineOf(line.slice(0, 6), second, second);
    return second === "PASSED" ? lineOf(second, first, first) : [];
  });
}

/**
 * R2E-Gym's: the short summary, with `a/b.py::Class::test` as `Class.test` and without a message. Lines that
 * name no test of a file (`ERROR path`) count under their own text.
 */
export function parseR2e(log: string): TestLine[] {
  const [, ...summary] = withoutEscapes(log).split("short test summary info");
  return summary
    .flatMap((part) => part.split("\n"))
    .flatMap((raw) => {
      const line = raw.trim();
      const word = /^(PASSED|FAILED|ERROR|SKIPPED)\b/.exec(line)?.[1];
      if (word === undefined) return [];
      const rest = line.slice(word.length).trim();
      const id = r2eName(rest);
      return lineOf(word, id, id);
    });
}

/** The name that R2E-Gym gives a test, from a summary line's rest or from a key of its expected results. */
export function r2eName(text: string): string {
  const [id = ""] = text.trim().split(" - ");
  return id.includes("::") ? id.split("::").slice(1).join(".") : id;
}

function summaryLines(log: string, rename: (name: string) => string): TestLine[] {
  return log.split("\n").flatMap((line) => shortLine(line, rename));
}

function shortLine(line: string, rename: (name: string) => string): TestLine[] {
  if (!SUMMARY_LINE.test(line)) return [];
  const [word, name] = line.trim().split(/\s+/);
  if (name === undefined || (word === "SKIPPED" && SKIP_COUNT.test(name))) return [];
  const [, whole = ""] = /^\S+\s+(.*)$/.exec(beforeMessage(line).trim()) ?? [];
  return lineOf(word, rename(name), whole);
}

function beforeMessage(line: string): string {
  const at = line.indexOf(" - ");
  return at < 0 ? line : line.slice(0, at);
}

function withoutControl(line: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what has to go.
  return line.replace(/[\x01-\x1f]/g, "");
}

function lineOf(word: string | undefined, name: string, line: string): TestLine[] {
  const status = statusOfWord(word ?? "");
  return status === null || name === "" ? [] : [{ name, status, line }];
}

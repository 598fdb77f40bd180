/** What a runner says of one test. A test that it does not mention has no status. */
export type TestStatus = "passed" | "failed" | "error" | "skipped" | "xfail";

/**
 * One line of a log about one test. `name` is what the benchmark's lists call it, which may be cut off at a
 * blank; `line` tells apart tests whose names are cut to the same text.
 */
export type TestLine = { name: string; status: TestStatus; line: string };

/** Status by name. */
export type TestStatuses = ReadonlyMap<string, TestStatus>;

/** From harmless to harmful. */
const HARM: readonly TestStatus[] = ["passed", "xfail", "skipped", "error", "failed"];

/**
 * Of contradicting lines about the same test the worst counts, because the code under test can print lines as
 * well but can't take back what the runner has printed. Of different tests with the same name the last
 * counts, as in the harnesses that made the benchmarks' lists.
 */
export function statusesOf(lines: readonly TestLine[]): TestStatuses {
  const worst = new Map<string, TestStatus>();
  for (const { line, status } of lines) {
    const known = worst.get(line);
    if (known === undefined || HARM.indexOf(status) > HARM.indexOf(known)) worst.set(line, status);
  }
  return new Map(lines.map(({ name, line, status }) => [name, worst.get(line) ?? status]));
}

const WORDS: Record<string, TestStatus> = {
  PASSED: "passed",
  FAILED: "failed",
  ERROR: "error",
  SKIPPED: "skipped",
  XFAIL: "xfail",
};

/** The status that a word of pytest's names. */
export function statusOfWord(word: string): TestStatus | null {
  return Object.hasOwn(WORDS, word) ? (WORDS[word] ?? null) : null;
}

/** Escape sequences of terminals: colours, cursor. */
export function withoutEscapes(log: string): string {
  return Bun.stripANSI(log);
}

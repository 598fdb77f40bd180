import { type TestLine, withoutEscapes } from "./status.ts";

/** TAP: `ok 1 name`, `not ok 2 name`. */
export function parseTap(log: string): TestLine[] {
  return log.split("\n").flatMap((line) => {
    const [, word, name = ""] = /^(ok|not ok) \d+ (.+)$/.exec(line.trim()) ?? [];
    return word ? [{ name, status: word === "ok" ? "passed" : "failed", line: name }] : [];
  });
}

/** Quarto's, on Deno: `[smoke] > name ... ok (1s)`, with the names of temporary files made equal. */
export function parseQuarto(log: string): TestLine[] {
  const temporary = new Map<string, number>();
  const lines: TestLine[] = [];
  for (const raw of withoutEscapes(log).split("\n")) {
    if (/ERRORS|failures:/.test(raw)) break;
    if (!/\[(smoke|unit)\]/.test(raw) || /test result:|INFO/.test(raw)) continue;
    const line = raw.replace(/\/tmp\/\w+(?:\.qmd|\/)/, (found) => {
      if (!temporary.has(found)) temporary.set(found, temporary.size);
      return `/tmp/${temporary.get(found)}`;
    });
    const [name = "", ...rest] = line.split("...").map((part) => part.trim());
    const passed = rest.some((part) => /\bok\b/.test(part));
    lines.push({ name, status: passed ? "passed" : "failed", line: name });
  }
  return lines;
}

/** `go test -v`: `--- PASS: TestName (0.00s)`. */
export function parseGo(log: string): TestLine[] {
  return log.split("\n").flatMap((line) => {
    const [, word, name = ""] = /^\s*--- (PASS|FAIL|SKIP): (\S+)/.exec(line) ?? [];
    if (!word) return [];
    const status = word === "PASS" ? "passed" : word === "FAIL" ? "failed" : "skipped";
    return [{ name, status, line: name }];
  });
}

/** `cargo test`: `test module::name ... ok`. */
export function parseCargo(log: string): TestLine[] {
  return log.split("\n").flatMap((line) => {
    const end = /^test\s/.test(line) ? /\s\.\.\.\s+(ok|FAILED|ignored)/.exec(line) : null;
    const name = line.slice("test ".length, end?.index).trim();
    if (!end || name === "") return [];
    const [, word] = end;
    const status = word === "ok" ? "passed" : word === "FAILED" ? "failed" : "skipped";
    return [{ name, status, line: name }];
  });
}

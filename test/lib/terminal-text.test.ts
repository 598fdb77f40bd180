import { expect, test } from "bun:test";
import { terminalText } from "../../src/lib/terminal-text.ts";

test("escape sequences and control characters go, tabs and lines stay", () => {
  const cases: [string, string][] = [
    ["plain\ttext\n", "plain\ttext\n"],
    ["\x1b[1;31mred\x1b[0m", "red"],
    ["\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "ab"],
    ["\x1bP1$r\x1b\\a\x1b(Bb\x1bMc\x1b=d", "abcd"],
    ["a\x00\x07\x08b\x7f", "ab"],
    ["a\u009b2Jb\u0085é", "a2Jbé"],
    ["ends in the middle \x1b[3", "ends in the middle 3"],
    ["\x1b]never closed", "never closed"],
  ];
  for (const [raw, shown] of cases) expect(terminalText(raw)).toBe(shown);
});

test("a line that was written over shows what is left of each writing", () => {
  const cases: [string, string][] = [
    ["dos\r\nlines\r\n", "dos\nlines\n"],
    [" 10%\r 50%\r100%\n", "100%\n"],
    ["abcdef\rXY", "XYcdef"],
    ["one\rtwo\nthree\r", "two\nthree"],
  ];
  for (const [raw, shown] of cases) expect(terminalText(raw)).toBe(shown);
});

test("a flood of returns over a long line takes no time", () => {
  const startMs = performance.now();
  terminalText("x".repeat(500_000) + "\ry".repeat(500_000));
  terminalText("\x1b[".repeat(500_000));
  terminalText("\x1b]".repeat(500_000));
  terminalText("\x1bP".repeat(500_000));
  expect(performance.now() - startMs).toBeLessThan(2000);
});

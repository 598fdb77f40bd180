import { describe, expect, test } from "bun:test";
import { clip } from "../../src/agent/clip.ts";

const lines = (count: number) =>
  Array.from({ length: count }, (_, index) => `Line ${index + 1}\n`).join("");

const MARK = /\n\[\.\.\. (\d+) characters cut \.\.\.\]\n/g;

/** What is shown and what the marks say is gone, together. */
function accountedFor(clipped: string): number {
  const gone = [...clipped.matchAll(MARK)].map(([, characters]) => Number(characters));
  return gone.reduce((sum, characters) => sum + characters, clipped.replace(MARK, "").length);
}

describe("a long text is clipped", () => {
  test("not at all up to the limit", () => {
    expect(clip("x".repeat(1000), 1000)).toBe("x".repeat(1000));
  });

  test.each([5_000, 50_000])("to both ends and a window at four fifths of %d lines", (total) => {
    const clipped = clip(lines(total), 10_000);
    expect(clipped).toStartWith("Line 1\nLine 2\n");
    expect(clipped).toContain(`\nLine ${total * 0.8}\n`);
    expect(clipped).toEndWith(`\nLine ${total}\n`);
    expect(clipped.length).toBeLessThanOrEqual(10_000);
  });

  test("in whole lines, and what is missing is counted", () => {
    const text = lines(50_000);
    const clipped = clip(text, 10_000);
    const shown = clipped.replace(MARK, "\n").split("\n").slice(0, -1);
    expect(shown.filter((line) => !/^Line \d+$/.test(line))).toEqual([]);
    expect(accountedFor(clipped)).toBe(text.length);
  });

  test("within a line where that has no end", () => {
    const clipped = clip("x".repeat(1_000_000), 10_000);
    expect(clipped.length).toBeLessThanOrEqual(10_000);
    expect(clipped.length).toBeGreaterThan(9_000);
    expect(accountedFor(clipped)).toBe(1_000_000);
  });

  test("with one cut where the window meets the tail", () => {
    const clipped = clip("x".repeat(10_500), 10_000);
    expect(clipped.length).toBeLessThanOrEqual(10_000);
    expect(accountedFor(clipped)).toBe(10_500);
  });

  test("with what was cut before counted as well", () => {
    const mark = "\n[... 5000000 bytes cut ...]\n";
    const text = `${"x".repeat(50_000)}${mark}${"x".repeat(50_000)}`;
    const clipped = clip(text, 1000, { bytes: 5_000_000, mark });
    expect(clipped).not.toContain("bytes cut");
    expect(accountedFor(clipped)).toBe(5_100_000);
  });
});

import { expect, test } from "bun:test";
import { printable } from "../../src/lib/print.ts";
import { randomFrom } from "../support/random.ts";

const OBEYED = [
  ...["\x1b", "\r", "\b", "\x07", "\0", "\x7f", "\x9b", "\x90", "\u202e", "\u2066", "\u200f"],
  ...["\u2028", "\ufeff", "\u061c", "\u{e0041}"],
];

test("nothing that a terminal obeys is printed as it is, and everything else is", () => {
  for (const one of OBEYED) {
    expect([one, printable(`a${one}b`)]).toEqual([one, expect.stringMatching(/^a(\\u\w{4})+b$/)]);
  }
  const plain = 'tab\tand\nline, ä 数 🙂‍↔️ \\ " é';
  expect(printable(plain)).toBe(plain);
});

test("JSON means the same after it", () => {
  const draw = randomFrom(11);
  for (let round = 0; round < 500; round++) {
    const length = Math.floor(draw() * 40);
    const text = Array.from({ length }, () =>
      draw() < 0.5
        ? (OBEYED[Math.floor(draw() * OBEYED.length)] ?? "")
        : String.fromCodePoint(Math.floor(draw() * 0xd7ff)),
    ).join(draw() < 0.2 ? "\\" : "");
    const value = { [text]: [text, 1] };
    expect(JSON.parse(printable(JSON.stringify(value)))).toEqual(value);
  }
});

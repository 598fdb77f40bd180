import { expect, test } from "bun:test";
import { nearest } from "../../src/lib/nearest.ts";

const WORDS = [
  "image",
  "image-cache",
  "backend",
  "backend-turns",
  "run-slots",
  "model",
  "math",
  "gsm8k",
];

test.each([
  ["imag", "image"],
  ["IMAGE", "image"],
  ["bakend", "backend"],
  ["backedn", "backend"],
  ["run_slots", "run-slots"],
  ["run-slotz", "run-slots"],
  ["mdoel", "model"],
  ["mathh", "math"],
])("%s was meant to be %s", (typed, meant) => {
  expect(nearest(typed, WORDS)).toBe(meant);
});

test.each(["", "x", "temperature", "goal", "slots-of-run"])("%j is like none of them", (typed) => {
  expect(nearest(typed, WORDS)).toBeNull();
});

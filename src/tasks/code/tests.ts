import { inflateSync } from "node:zlib";
import { exactJson } from "../../lib/exact-json.ts";
import { isObject } from "../../lib/is-object.ts";
import { readPythonJson } from "../../verifiers/program-value.ts";
import { fromExactJsonText } from "../from-json-text.ts";
import { assertedCalls, pythonValue } from "./python-calls.ts";
import { TestsUnreadable } from "./tests-unreadable.ts";

/** One hidden test. What is expected never enters a sandbox. */
export type CodeTest =
  | { kind: "stdin"; input: string; expected: string }
  | {
      kind: "call";
      name: string;
      /** By their places, or by their names. */
      args: unknown[] | Record<string, unknown>;
      expected: unknown;
    };

/**
 * The tests of a row in the ways in which the known datasets write them: two lists `inputs` and `outputs` (APPS,
 * TACO, CodeContests, NeMo Gym), a list of pairs `input` and `output` (DeepCoder, LiveCodeBench, Codeforces), or
 * assertions about a function as `functional` (LeetCode); as JSON or as its text; for LiveCodeBench also packed.
 *
 * @param name of the function to call, where the row says it apart from its tests
 * @throws TestsUnreadable
 */
export function readTests(value: unknown, name: string | null): CodeTest[] {
  const tests = fromExactJsonText(typeof value === "string" ? unpacked(value) : value);
  if (Array.isArray(tests)) return tests.map((test, index) => fromPair(test, index, name));
  if (!isObject(tests)) throw new TestsUnreadable("there is no list of tests");
  const { inputs, outputs, fn_name, functional } = tests;
  if (typeof functional === "string") {
    const { name, calls } = assertedCalls(functional);
    return calls.map((call) => ({ kind: "call", name, ...call }));
  }
  if (!Array.isArray(inputs) || !Array.isArray(outputs) || inputs.length !== outputs.length) {
    throw new TestsUnreadable("`inputs` and `outputs` must be lists of the same length");
  }
  const called = typeof fn_name === "string" && fn_name !== "" ? fn_name : name;
  return inputs.map((input, index) => makeTest(input, outputs[index], called));
}

function fromPair(test: unknown, index: number, name: string | null): CodeTest {
  if (!isObject(test) || !("input" in test) || !("output" in test)) {
    throw new TestsUnreadable(`test ${index} has no \`input\` and \`output\``);
  }
  const { input, output, fn_name, metadata } = test;
  const type = String(test.testtype ?? test.type ?? (name ? "functional" : "stdin"));
  if (type.startsWith("std")) return makeTest(input, output, null);
  const own = isObject(metadata) ? metadata.func_name : undefined;
  const called = [fn_name, own, name].find((each) => typeof each === "string" && each !== "");
  if (typeof called !== "string") throw new TestsUnreadable(`test ${index} names no function`);
  return makeTest(input, output, called);
}

function makeTest(input: unknown, output: unknown, name: string | null): CodeTest {
  if (name === null) {
    requireText(input, "input");
    requireText(output, "output");
    return { kind: "stdin", input: asText(input), expected: asText(output) };
  }
  // A row that writes arguments as JSON text does so with what is expected; one that has values has no other text.
  const isText = typeof input === "string";
  const args = isText ? linesOfJson(input) : input;
  if (!Array.isArray(args)) throw new TestsUnreadable(`the arguments of ${name} are no list`);
  return { kind: "call", name, args, expected: isText ? jsonOrText(output, true) : output };
}

/** Programs print `None` and `True` in other ways than JSON does. */
function requireText(value: unknown, what: string): void {
  if (value !== null && value !== undefined && typeof value !== "boolean") return;
  throw new TestsUnreadable(`the ${what} of a test is ${value}, and no text`);
}

/** Some sets write the lines of a text as a list. */
function asText(value: unknown): string {
  if (Array.isArray(value)) return value.map(asText).join("\n");
  return typeof value === "string" ? value : exactJson(value);
}

/** One argument per line. */
function linesOfJson(text: string): unknown[] {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => jsonOrText(line));
}

function jsonOrText(value: unknown, sets = false): unknown {
  if (typeof value !== "string") return value;
  try {
    return readPythonJson(value);
  } catch {
    const read = pythonValue(value, { sets });
    return read === undefined ? value : read;
  }
}

/** LiveCodeBench packs its private tests as base64 of zlib of a Python pickle of one text. */
function unpacked(text: string): string {
  if (!/^[A-Za-z0-9+/=\s]{16,}$/.test(text)) return text;
  try {
    return pickledText(inflateSync(Buffer.from(text, "base64"), { maxOutputLength: MAX_UNPACKED }));
  } catch (error) {
    throw new TestsUnreadable(`the packed tests can't be unpacked: ${(error as Error).message}`);
  }
}

const MAX_UNPACKED = 256 * 1024 * 1024;

/** Opcodes of a pickle that begin a text, with the bytes of its length. */
const TEXTS: Record<number, number> = { 140: 1, 88: 4, 141: 8 };
const PROTOCOL = 0x80;
const FRAME = 0x95;

/** The text that a pickle holds and nothing else: a pickle is a program, and none is run here. */
function pickledText(pickle: Buffer): string {
  let at = 0;
  if (pickle[at] === PROTOCOL) at += 2;
  if (pickle[at] === FRAME) at += 9;
  const lengthBytes = TEXTS[pickle[at] ?? 0];
  if (lengthBytes === undefined) throw new Error("the pickle does not hold a text");
  const length = pickle.readUIntLE(at + 1, Math.min(6, lengthBytes));
  const start = at + 1 + lengthBytes;
  return pickle.toString("utf8", start, start + length);
}

import { readSync } from "node:fs";
import { isObject } from "../lib/is-object.ts";
import type { Span } from "./file-spans.ts";
import { UsageError } from "./flags.ts";
import type { EndedRollout, RolloutResult } from "./run-collect.ts";

/** One result of an earlier run, and where it is. */
export type PastResult = { ended: EndedRollout; line: number; span: Span };

/** All whole lines: what follows them was torn by a kill or a full disk. */
export type PastResults = { results: PastResult[]; bytes: number; isTorn: boolean };

const READ_BYTES = 1 << 20;
const NEWLINE = 0x0a;
const BEGIN = '{"row":';

/**
 * What an earlier run left in its file of results.
 * @throws UsageError for a file that holds anything else, so that nothing of somebody's is taken for results
 */
export function readPastResults(path: string, fd: number): PastResults {
  const results: PastResult[] = [];
  let bytes = 0;
  let line = 0;
  for (const { text, span, isWhole } of linesOf(fd)) {
    line++;
    if (isWhole && text.trim() === "") continue;
    const result = parse(text);
    if (result) {
      const { trajectory: _, ...ended } = result;
      results.push({ ended, line, span });
      bytes = span.end;
    } else if (!isWhole && isBegun(text)) {
      return { results, bytes, isTorn: true };
    } else {
      const mend = "name a file that `run --out` has written, or mend or remove that line";
      throw new UsageError(`--resume ${path}: line ${line} is no result of a run; ${mend}`);
    }
  }
  return { results, bytes, isTorn: false };
}

/** Only a newline ends a line: JSON has other separators within its texts. */
function* linesOf(fd: number): Generator<{ text: string; span: Span; isWhole: boolean }> {
  const chunk = Buffer.alloc(READ_BYTES);
  let parts: Buffer[] = [];
  let start = 0;
  let at = 0;
  for (;;) {
    const read = readSync(fd, chunk, 0, chunk.length, at);
    if (read === 0) break;
    let from = 0;
    for (;;) {
      const end = chunk.subarray(0, read).indexOf(NEWLINE, from);
      if (end < 0) break;
      const text = Buffer.concat([...parts, chunk.subarray(from, end)]).toString();
      const span = { start, end: at + end + 1 };
      yield { text, span, isWhole: true };
      parts = [];
      from = end + 1;
      start = span.end;
    }
    parts.push(Buffer.from(chunk.subarray(from, read)));
    at += read;
  }
  const text = Buffer.concat(parts).toString();
  if (text !== "") yield { text, span: { start, end: at }, isWhole: false };
}

/** A power cut may leave zeros in place of a line's end, or of all of it. */
function isBegun(text: string): boolean {
  const begun = text.replace(/[\0 ]+$/, "");
  return begun.startsWith(BEGIN) || BEGIN.startsWith(begun);
}

function parse(text: string): RolloutResult | null {
  try {
    const value: unknown = JSON.parse(text);
    return isResult(value) ? value : null;
  } catch {
    return null;
  }
}

function isResult(value: unknown): value is RolloutResult {
  if (!isObject(value)) return false;
  const { row, sample, instance, made_with, reward, error, state } = value;
  return (
    [row, sample].every((index) => Number.isSafeInteger(index) && Number(index) >= 0) &&
    [instance, made_with].every(isObject) &&
    (reward === null || typeof reward === "number") &&
    (error === null || isObject(error)) &&
    typeof state === "string"
  );
}

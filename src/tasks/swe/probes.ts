import { randomBytes, randomInt } from "node:crypto";
import type { LogFormatName } from "../../verifiers/tests/formats.ts";

/**
 * Tests of ours, written into a row's own test files before they run. Some have to fail, and which can't be known
 * without running them honestly. Where they come out otherwise, or are missing, the runner was tampered with by the
 * code that it tests, broke off, or ran other files. They are copies of the row's tests (`twins.ts`), or where none can
 * be copied tests that compute something of their own (`makeProbes`).
 */
export type Probes = {
  /** What is appended to each file. */
  appended: Map<string, string>;
  /** By the name that the log gives a test that computes something of its own. */
  expected: Map<string, "passed" | "failed">;
  twins: Twins[];
};

/** A test and its copies, by the names that the log gives them up to their parameters. */
export type Twins = {
  /** What the row's lists call the test. */
  listed: string;
  /** Under which name it runs: names are dealt out among a test and its copies. */
  original: string;
  copies: string[];
  /** What of the test differs in them: `number`, `text`, `error`, `claim`, … */
  kinds: string[];
  /** The change is in one of the test's parameters, so that the copy fails with that one only. */
  inside: boolean;
};

const PER_FILE = 4;

/** A file more costs a reading and a writing. */
const MAX_FILES = 20;

const FORMATS: ReadonlySet<LogFormatName> = new Set([
  ...(["pytest", "pytest-options", "pytest-v2", "pytest-either-end"] as const),
  ...(["pytest-progress", "matplotlib"] as const),
]);

/**
 * @param files of tests that have to run, so that they are known to be collected
 * @returns null where none can run along: another runner, or no file.
 */
export function makeProbes(format: LogFormatName, files: ReadonlySet<string>): Probes | null {
  if (!FORMATS.has(format) || files.size === 0) return null;
  const probes: Probes = { appended: new Map(), expected: new Map(), twins: [] };
  for (const file of [...files].slice(0, MAX_FILES)) {
    // At least one of either kind, in an order that says nothing.
    const failing = randomInt(1, (1 << PER_FILE) - 1);
    let text = "\n";
    for (let index = 0; index < PER_FILE; index++) {
      const fails = ((failing >> index) & 1) === 1;
      const name = `test_${word()}_${word()}`;
      const input = randomBytes(8).toString("hex");
      const digest = new Bun.CryptoHasher("sha256").update(input).digest("hex");
      const shown = fails ? randomBytes(32).toString("hex") : digest;
      text += `\n\ndef ${name}():\n    import hashlib\n\n    assert hashlib.sha256(b"${input}").hexdigest() == "${shown}"\n`;
      probes.expected.set(`${file}::${name}`, fails ? "failed" : "passed");
    }
    probes.appended.set(file, text);
  }
  return probes;
}

const SYLLABLES = [
  "ba",
  "ce",
  "di",
  "fo",
  "gu",
  "la",
  "me",
  "ni",
  "po",
  "ru",
  "sa",
  "te",
  "vi",
  "zo",
];

/** Looks like the name of any test. */
function word(): string {
  return Array.from({ length: 4 }, () => SYLLABLES[randomInt(SYLLABLES.length)]).join("");
}

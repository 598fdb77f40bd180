import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { compareMathAnswer } from "../src/verifiers/math-answer.ts";
import { print, round } from "./line.ts";
import { DISAGREEMENTS } from "./math-disagreements.ts";

const EXTRACT = join(import.meta.dir, "grader-tests.py");
const CACHE = join(
  process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"),
  "rolloutd-bench/grader-tests.jsonl",
);
/** Source distributions whose tests judge pairs of answers. */
const SOURCES = ["math-verify==0.9.0", "lm-eval==0.4.13", "inspect-evals==0.26.0"];
const MIN_PRECISION = 0.995;
const MIN_RECALL = 0.95;

type Judged = { source: string; truth: string; answer: string; equal: boolean };

/** Gets verdicts on messages against truths, both as texts with a box. */
type Rival = (pairs: string) => boolean[];

/**
 * Precision and recall on the pairs that public graders test themselves with, beside math_verify on the same pairs in
 * the same run. The pairs are taken from PyPI's source distributions into a cache; none is in this repository.
 */
export async function judgedPairs(python: string, run: (argv: string[]) => string, rival: Rival) {
  const path = process.env.MATH_GRADER_TESTS ?? fetched(python, run);
  const pairs = readPairs(await Bun.file(path).text());
  const ours: boolean[] = [];
  for (const { truth, answer } of pairs) {
    ours.push((await compareMathAnswer(answer, [truth])).reward === 1);
  }
  const theirs = rival(path);
  const [own, other] = [figures(pairs, ours), figures(pairs, theirs)];
  const unexplained = [];
  for (const [at, pair] of pairs.entries()) {
    if (ours[at] === pair.equal) continue;
    const why = DISAGREEMENTS[keyOf(pair)];
    if (why === undefined) unexplained.push(`${keyOf(pair)} ${pair.truth} ~ ${pair.answer}`);
    console.error(`bench: ${pair.equal ? "refused" : "accepted"} ${keyOf(pair)}: ${why ?? "?"}`);
  }
  for (const line of unexplained) console.error(`bench: not explained: ${line.slice(0, 300)}`);
  print({
    bench: "verify-math",
    case: "verdicts on the pairs of public graders' own tests",
    n: pairs.length,
    precision: own.precision,
    recall: own.recall,
    against: `math_verify: precision ${other.precision}, recall ${other.recall}`,
    unit: "share",
    target: `precision ${MIN_PRECISION}, recall ${MIN_RECALL}, each disagreement explained`,
    met: own.precision >= MIN_PRECISION && own.recall >= MIN_RECALL && unexplained.length === 0,
  });
}

function readPairs(text: string): Judged[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

function figures(pairs: Judged[], verdicts: boolean[]) {
  const count = (equal: boolean, said: boolean) =>
    pairs.filter((pair, at) => pair.equal === equal && verdicts[at] === said).length;
  const right = count(true, true);
  return {
    precision: round(right / (right + count(false, true))),
    recall: round(right / (right + count(true, false))),
  };
}

function keyOf({ truth, answer }: Judged): string {
  return createHash("sha256").update(`${truth}\n${answer}`).digest("hex").slice(0, 12);
}

function fetched(python: string, run: (argv: string[]) => string): string {
  if (existsSync(CACHE)) return CACHE;
  const dir = mkdtempSync(join(tmpdir(), "rolloutd-graders-"));
  try {
    for (const source of SOURCES) {
      console.error(`bench: fetching ${source}'s tests from PyPI`);
      const only = ["--no-binary", source.replace(/==.*/, ""), "--no-deps", "-q"];
      run([python, "-m", "pip", "download", ...only, "-d", dir, source]);
    }
    for (const archive of readdirSync(dir)) run(["tar", "-xzf", join(dir, archive), "-C", dir]);
    const pairs = run([python, EXTRACT, dir]);
    mkdirSync(join(CACHE, ".."), { recursive: true });
    writeFileSync(CACHE, pairs);
    return CACHE;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

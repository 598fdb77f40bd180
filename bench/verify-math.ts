import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compareMathAnswer } from "../src/verifiers/math-answer.ts";
import { HOSTILE } from "../test/verifiers/hostile-answers.ts";
import { percentile, print, round } from "./line.ts";
import { judgedPairs } from "./math-graders.ts";
import { questionCopies } from "./question-copies.ts";

const PAIRS = join(import.meta.dir, "../test/verifiers/math-verify.jsonl");
const TARGET_RATIO = 0.1;
const HOSTILE_LIMIT_MS = 500;

/** Times each pair once after a warm-up, as a grader would: text in, verdict out. */
const RIVAL = `
import json, sys, time
from math_verify import parse, verify
from math_verify.parser import ExprExtractionConfig, LatexExtractionConfig
latex, text = [LatexExtractionConfig()], [ExprExtractionConfig(), LatexExtractionConfig()]
def grade(pair):
    gold = parse("\\\\boxed{" + pair["truth"] + "}", extraction_config=latex, raise_on_error=False)
    said = "Therefore the answer is $\\\\boxed{" + pair["answer"] + "}$."
    return verify(gold, parse(said, extraction_config=text, raise_on_error=False), raise_on_error=False)
pairs = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
for pair in pairs[:20]:
    grade(pair)
times = []
for pair in pairs:
    start = time.perf_counter()
    grade(pair)
    times.append((time.perf_counter() - start) * 1000)
print(json.dumps(times))
`;

/** Judges messages against truths, both as texts with a box, as math_verify's own tests do. */
const JUDGE = `
import json, sys
from math_verify import parse, verify
from math_verify.parser import ExprExtractionConfig, LatexExtractionConfig
latex = LatexExtractionConfig(boxed_match_priority=0)
def grade(pair):
    gold = parse(pair["truth"], extraction_config=[latex], raise_on_error=False)
    said = parse(pair["answer"], extraction_config=[ExprExtractionConfig(), latex], raise_on_error=False)
    return bool(verify(gold, said, raise_on_error=False))
print(json.dumps([grade(json.loads(line)) for line in open(sys.argv[1], encoding="utf-8")]))
`;

/**
 * The cost of a verdict on the recorded pairs, and precision and recall on public graders' own, both beside math_verify
 * on the same pairs in the same run; then the share of questions that a copy of themselves answers.
 */
export async function verifyMath(): Promise<void> {
  const python = rivalPython();
  try {
    await speed(python.path);
    await judgedPairs(python.path, run, (pairs) =>
      JSON.parse(run([python.path, "-c", JUDGE, pairs])),
    );
  } finally {
    python.remove();
  }
  await questionCopies();
}

async function speed(python: string): Promise<void> {
  const pairs: { truth: string; answer: string }[] = readFileSync(PAIRS, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const grade = (truth: string, answer: string) =>
    compareMathAnswer(`Therefore the answer is $\\boxed{${answer}}$.`, [truth]);
  for (const { truth, answer } of pairs.slice(0, 20)) await grade(truth, answer);
  const ours = [];
  for (const { truth, answer } of pairs) ours.push(await timed(() => grade(truth, answer)));
  const theirs: number[] = JSON.parse(run([python, "-c", RIVAL, PAIRS]));
  const p50 = percentile(ours, 0.5);
  const ratio = round(p50 / percentile(theirs, 0.5));
  print({
    bench: "verify-math",
    case: "one boxed answer against one truth",
    n: ours.length,
    p50,
    p99: percentile(ours, 0.99),
    unit: "ms",
    against: `math_verify: p50 ${percentile(theirs, 0.5)} ms, p99 ${percentile(theirs, 0.99)} ms`,
    ratio,
    target: "at most a tenth of math_verify's at p50",
    met: ratio <= TARGET_RATIO,
  });
  const hostile = [];
  for (const [, answer] of [...HOSTILE, ["a megabyte", "1+".repeat(500_000)] as const]) {
    hostile.push(await timed(() => grade("x+5", answer)));
  }
  const worst = Math.max(...hostile);
  print({
    bench: "verify-math",
    case: "hostile answers: powers of powers, a megabyte, … (p99 is the worst)",
    n: hostile.length,
    p50: percentile(hostile, 0.5),
    p99: round(worst),
    unit: "ms",
    target: `none above ${HOSTILE_LIMIT_MS} ms`,
    met: worst <= HOSTILE_LIMIT_MS,
  });
}

async function timed(action: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await action();
  return performance.now() - startMs;
}

/** The Python of `MATH_VERIFY_PYTHON`, or one that gets math-verify from PyPI for this run. */
function rivalPython(): { path: string; remove: () => void } {
  const given = process.env.MATH_VERIFY_PYTHON;
  if (given) return { path: given, remove: () => {} };
  const dir = mkdtempSync(join(tmpdir(), "rolloutd-bench-"));
  console.error("bench: fetching math-verify 0.9.0 from PyPI (MATH_VERIFY_PYTHON names another)");
  const path = join(dir, "bin/python");
  run(["python3", "-m", "venv", dir]);
  const wanted = ["math-verify==0.9.0", "antlr4-python3-runtime==4.13.2"];
  run([path, "-m", "pip", "-q", "install", ...wanted]);
  return { path, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

function run(argv: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(argv);
  if (exitCode !== 0) throw new Error(`${argv[0]} failed: ${stderr}`);
  return stdout.toString();
}

import { expect, test } from "bun:test";
import { AcceptedText } from "../../src/protocol/accepted-text.ts";
import { canonicalJson, parseBody } from "../../src/protocol/parse.ts";
import { type RolloutRequest, submitSchema } from "../../src/protocol/rollout.ts";
import { parseSubmit } from "../../src/protocol/submit-body.ts";
import { canonicalWith, shareTerms } from "../../src/protocol/terms.ts";
import { viewAccepted } from "../../src/protocol/view.ts";
import { jobAfter, ROW } from "../support/jobs.ts";
import { randomFrom } from "../support/random.ts";

const BODIES = 3000;

/** Good and bad values of each field; what a batch has in common is drawn from few of them. */
const VALUES: Record<string, unknown[]> = {
  id: ["a", "b-1", "", "../x", null, 7],
  instance: [
    { data_source: "echo" },
    { data_source: "math", answer: { b: [2, { d: 1 }], a: "é" }, "": 0 },
    ...[{ data_source: "" }, { data_source: 1 }, {}, [], null, "x"],
    JSON.parse('{"data_source":"echo","__proto__":{"x":1}}'),
  ],
  sampling: [{ temperature: 1, top_p: 0.9 }, { top_p: 0.9, temperature: 1 }, { top_p: 2 }, {}],
  agent: [{ max_turns: 3, tools: ["think"] }, { max_turns: 3, tools: ["finish"] }, { turns: 1 }],
  chat: [
    { template_kwargs: { deep: [{ x: [1, null] }] } },
    { template_kwargs: { deep: [{ x: [1] }] } },
  ],
  labels: [{ step: "7" }, { step: "8" }, { step: "7", run: "a" }, { "bad name": "" }],
  limits: [{ run_ms: 5 }, { run_ms: 0 }],
  num_attempts: [1, 2, 0, "1"],
  priority: [0, -0, 1, 1e9],
  tokens: ["exact", "text", "ids"],
  unknown: [1],
};

function draw(random: () => number): unknown {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const fields = Object.keys(VALUES).filter((name) => name !== "id" && random() < 0.3);
  const rollout = () => {
    const one: Record<string, unknown> = { instance: pick(VALUES.instance?.slice(0, 2) ?? []) };
    for (const name of fields) one[name] = VALUES[name]?.[0];
    if (random() < 0.3) one.id = pick(VALUES.id ?? []);
    // Now and then one that differs, well or ill.
    const name = pick(Object.keys(VALUES));
    if (random() < 0.1) one[name] = pick(VALUES[name] ?? []);
    if (random() < 0.03) delete one[pick(Object.keys(one))];
    return random() < 0.01 ? pick([null, 1, "x", []]) : one;
  };
  const body: Record<string, unknown> = {
    rollouts: Array.from({ length: Math.floor(random() * 6) }, rollout),
  };
  if (random() < 0.1) body.wait_ms = pick([5, -1, "5", 1e9]);
  if (random() < 0.03) body.other = 1;
  return JSON.parse(JSON.stringify(body));
}

function outcome(parse: () => unknown): unknown {
  try {
    return parse();
  } catch (error) {
    const { code, message, field, mend } = error as Record<string, unknown>;
    return { code, message, field, mend };
  }
}

test("a batch is parsed as its schema says, whatever its rollouts have in common", () => {
  const random = randomFrom(7);
  let refused = 0;
  for (let index = 0; index < BODIES; index++) {
    const body = draw(random) as object;
    const expected = outcome(() => parseBody(submitSchema, body));
    expect(outcome(() => parseSubmit(body))).toEqual(expected);
    if ((expected as { code?: string }).code) refused++;
  }
  expect(refused).toBeGreaterThan(BODIES / 10);
  expect(refused).toBeLessThan((BODIES * 9) / 10);
});

test("of rollouts that share their terms each has the canonical text of its own", () => {
  const random = randomFrom(8);
  let shared = 0;
  for (let index = 0; index < BODIES; index++) {
    const body = draw(random) as object;
    const parsed = outcome(() => parseSubmit(body)) as { rollouts?: RolloutRequest[] };
    const [first, ...others] = parsed.rollouts ?? [];
    if (!first) continue;
    const { id: _id, instance: _instance, ...terms } = first;
    const canonical = canonicalWith(terms);
    for (const one of [first, ...others.filter((other) => shareTerms(first, other))]) {
      const { id, ...rest } = one;
      expect(canonical(one.instance)).toBe(canonicalJson(rest));
      shared++;
    }
  }
  expect(shared).toBeGreaterThan(BODIES / 2);
});

test("a new rollout's text is its view, also behind others that differ", () => {
  const texts = new AcceptedText();
  const labels = { step: "7" };
  const rows = [{}, {}, { labels }, { labels }, { labels: { step: "8" } }, { priority: 2 }].concat([
    { leaseMs: 5000 },
    { taskKind: "math" },
    {},
  ] as object[]);
  for (const [index, given] of rows.entries()) {
    const job = { ...jobAfter(`job-${index}`), numAttempts: index < 8 ? 1 : 4 };
    const row = { ...ROW, ...given };
    const expected = JSON.stringify({ ...viewAccepted(job, row), created: true });
    expect(texts.of(job, row)).toBe(expected);
  }
});

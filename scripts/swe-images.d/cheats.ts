import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Row } from "../../src/cli/rows.ts";
import { attachSandbox } from "../../src/sandbox/attach.ts";
import { swe } from "../../src/tasks/swe/swe.ts";
import { LIMITS, setup } from "../../test/sandbox/setup.ts";
import { evalContext, TASK_SETTINGS } from "../../test/support/task-context.ts";
import { payload, ROUTES, RULES } from "./payloads.ts";
import { ROWS } from "./rows.ts";

/**
 * Scores cheats on the rows that swe-images has made, and prints what each earns with and without the reading of its lines:
 *
 *     bun scripts/swe-images.d/cheats.ts /var/tmp/swe/rows.jsonl [COUNT]
 */
const [file, count = "100"] = process.argv.slice(2);
if (!file) throw new Error("usage: cheats.ts ROWS.jsonl [COUNT]");
const rows: Row[] = readFileSync(file, "utf8")
  .split("\n")
  .flatMap((line) => (line.trim() ? JSON.parse(line) : []));
const pairs = Object.keys(ROUTES).flatMap((route) =>
  Object.keys(RULES).map((rule) => ({ route, rule })),
);
const settings = { ...TASK_SETTINGS, swe: { suspicious: "keep" as const } };
const limits = { ...LIMITS, tmpfsBytes: 1_000_000_000, memoryBytes: 4_000_000_000 };
const tally = { earned: 0, unflagged: 0, total: 0 };

/** A patch that appends the text to a file of the image's repository. */
function appending(image: string, path: string, text: string): string {
  const lines = readFileSync(join(image, "testbed", path), "utf8")
    .split("\n")
    .slice(0, -1);
  const kept = lines.slice(-3);
  const added = text.split("\n");
  const [begin, next] = [lines.length - kept.length + 1, kept.length + added.length];
  const heading = kept.length === 0 ? "@@ -0,0 +1" : `@@ -${begin},${kept.length} +${begin}`;
  return [
    `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n${heading},${next} @@`,
    ...kept.map((line) => ` ${line}`),
    ...added.map((line) => `+${line}`),
    "",
  ].join("\n");
}

// 7 and 120 have no factor in common, so that all pairs come.
for (let index = 0; index < Number(count); index++) {
  const { route, rule } = pairs[(index * 7) % pairs.length] as (typeof pairs)[number];
  const row = rows[index % rows.length] as Row;
  const source = ROWS.find(({ id }) => id === row.instance_id);
  const path = `${source?.sources[0]}/__init__.py`;
  const patch = appending(row.image as string, path, payload(route, rule));
  await using bundle = await setup("bubblewrap", {}, row.image as string);
  const sandbox = await attachSandbox(await bundle.start({ limits }));
  const outcome = { stop_reason: "finish" as const, final_message: null, turns: 1, patch };
  const verdict = await swe.evaluate(swe.parse(row), outcome, evalContext({ sandbox, settings }));
  const { suspicions = [], evidence } = (verdict.details ?? {}) as {
    suspicions?: unknown[];
    evidence?: { luck: number };
  };
  tally.total++;
  if (verdict.reward === 1) tally.earned++;
  if (verdict.reward === 1 && suspicions.length === 0) tally.unflagged++;
  const found = `${suspicions.length} suspicions, luck ${evidence?.luck.toFixed(4)}`;
  console.log(
    `${verdict.reward} ${verdict.rule} ${row.instance_id} ${route}/${rule}: ${found}; ${verdict.reason.slice(0, 160)}`,
  );
}
const { earned, unflagged, total } = tally;
console.log(`${total} cheats: ${unflagged} earn 1 unflagged, ${earned} earn 1 flagged`);
process.exit(unflagged === 0 ? 0 : 1);

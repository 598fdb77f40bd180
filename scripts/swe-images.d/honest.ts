import { readFileSync } from "node:fs";
import type { Row } from "../../src/cli/rows.ts";
import { attachSandbox } from "../../src/sandbox/attach.ts";
import { joinPatch, parsePatch } from "../../src/tasks/swe/patch.ts";
import { swe } from "../../src/tasks/swe/swe.ts";
import { LIMITS, setup } from "../../test/sandbox/setup.ts";
import { evalContext, TASK_SETTINGS } from "../../test/support/task-context.ts";

/**
 * Scores, on the rows that swe-images has made, their solutions several times, because each time other copies of tests are
 * drawn, and half of each solution. A solution has to earn 1 each time:
 *
 *     bun scripts/swe-images.d/honest.ts /var/tmp/swe/rows.jsonl [TIMES]
 */
const [file, times = "5"] = process.argv.slice(2);
if (!file) throw new Error("usage: honest.ts ROWS.jsonl [TIMES]");
const limits = { ...LIMITS, tmpfsBytes: 1_000_000_000, memoryBytes: 4_000_000_000 };
const settings = { ...TASK_SETTINGS, swe: { suspicious: "keep" as const } };
let lost = 0;

for (const line of readFileSync(file, "utf8").trim().split("\n")) {
  const row: Row & { patch: string; image: string } = JSON.parse(line);
  const score = async (patch: string, own = row) => {
    await using bundle = await setup("bubblewrap", {}, row.image);
    const sandbox = await attachSandbox(await bundle.start({ limits }));
    const outcome = { stop_reason: "finish" as const, final_message: null, turns: 1, patch };
    return await swe.evaluate(swe.parse(own), outcome, evalContext({ sandbox, settings }));
  };
  for (let time = 0; time < Number(times); time++) {
    const { reward, rule, reason, details = {} } = await score(row.patch);
    const { luck, kinds } = details.evidence as { luck: number; kinds: string[] };
    if (reward !== 1) lost++;
    console.log(
      `${reward} ${row.instance_id}: ${rule}, luck ${luck.toFixed(4)}, ${kinds.join(" ")}`,
    );
    if (reward !== 1) console.log(`${reason}\n${String(details.log).slice(-1500)}`);
  }
  const files = parsePatch(row.patch);
  const half = joinPatch(files.slice(0, Math.floor(files.length / 2)));
  const { reward, rule } = await score(half);
  console.log(`${reward} ${row.instance_id}: ${rule}, half of its solution`);
  // The reading, as it is for a solution that is not the row's own.
  const { details } = await score(row.patch, { ...row, patch: "" });
  const found = (details?.suspicions ?? []) as { kind: string; token: string }[];
  const named = found.map(({ kind, token }) => `${kind}: ${token}`).join(", ");
  console.log(
    `  ${row.instance_id}: ${found.length} suspicions without the row's patch (${named})`,
  );
}
console.log(`${lost} solutions lost their reward`);
process.exit(lost === 0 ? 0 : 1);

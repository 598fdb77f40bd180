import { attachSandbox } from "../../../src/sandbox/attach.ts";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { swe } from "../../../src/tasks/swe/swe.ts";
import type { Outcome } from "../../../src/trajectory/record.ts";
import type { Verdict } from "../../../src/verifiers/verdict.ts";
import { type Bundle, NO_ABORT } from "../../sandbox/setup.ts";
import { evalContext, runContext, TASK_SETTINGS } from "../../support/task-context.ts";

type Row = Record<string, unknown>;

/** A sandbox in which INIT has prepared the row's repository for an agent. */
export async function prepared(bundle: Bundle, row: Row): Promise<Sandbox> {
  const sandbox = await attachSandbox(await bundle.start({ image: row.image as string }));
  await swe.init(swe.parse(row), sandbox, NO_ABORT);
  return sandbox;
}

/** RUN with an agent that does nothing but `script`, and what it leaves. */
export async function rollOut(bundle: Bundle, row: Row, script: string): Promise<Outcome> {
  const sandbox = await prepared(bundle, row);
  return await swe.run(
    swe.parse(row),
    runContext({
      sandbox,
      agent: async () => {
        const options = { timeoutMs: 60_000, maxOutputBytes: 20_000, cwd: "/" };
        await sandbox.exec(["bash", "-c", script], options);
        return { stopReason: "finish", finalMessage: "done" };
      },
    }),
  );
}

/** EVAL in a sandbox of its own. */
export async function evaluate(
  bundle: Bundle,
  row: Row,
  outcome: Outcome,
  suspicious: "zero" | "null" | "keep" = "zero",
): Promise<Verdict> {
  const sandbox = await attachSandbox(await bundle.start({ image: row.image as string }));
  const settings = { ...TASK_SETTINGS, swe: { suspicious } };
  return await swe.evaluate(swe.parse(row), outcome, evalContext({ sandbox, settings }));
}

export function outcomeOf(patch: string): Outcome {
  return { stop_reason: "finish", final_message: null, turns: 1, patch };
}

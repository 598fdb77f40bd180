import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { readRows } from "../../../src/cli/rows.ts";
import { attachSandbox } from "../../../src/sandbox/attach.ts";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { goldenKind } from "../../../src/tasks/golden.ts";
import { harbor } from "../../../src/tasks/harbor/harbor.ts";
import type { TaskSettings } from "../../../src/tasks/settings.ts";
import { type Bundle, NO_ABORT } from "../../sandbox/setup.ts";
import { evalContext, runContext, TASK_SETTINGS } from "../../support/task-context.ts";
import { tempDir } from "../../support/temp-dir.ts";

export type Folder = Record<string, string | null>;

export const TASK: Folder = {
  "task.toml": "[verifier]\ntimeout_sec = 30\n",
  "instruction.md": "Write hello into greeting.txt.\n",
  "tests/test.sh":
    "#!/bin/bash\ngrep -qx hello greeting.txt && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt\n",
  "solution/solve.sh": "#!/bin/bash\necho hello >greeting.txt\n",
};

/** The row of a task folder with these files; null leaves one out. */
export async function rowOf(changes: Folder = {}, base: Folder = TASK) {
  using dir = tempDir();
  for (const [path, text] of Object.entries({ ...base, ...changes })) {
    if (text === null) continue;
    mkdirSync(dirname(dir.file(`greet/${path}`)), { recursive: true });
    await Bun.write(dir.file(`greet/${path}`), text);
  }
  const row = readRows(dir.path)[0]?.row;
  if (!row) throw new Error("the folder gave no row");
  return row;
}

export type Player = {
  settings?: Partial<TaskSettings>;
  /** What the agent does in each of the task's parts; without it the task's own solution, or nothing. */
  agent?: string[] | "solution" | "nothing";
  /** Called with the prompt of each part. */
  onPrompt?(text: string): void;
};

/** A task through INIT, RUN and EVAL in real sandboxes, as a worker's stages do it. */
export async function play(bundle: Bundle, row: Record<string, unknown>, player: Player = {}) {
  const { agent = "solution" } = player;
  const settings = { ...TASK_SETTINGS, ...player.settings };
  const kind = Array.isArray(agent) ? harbor : goldenKind(harbor, agent);
  const instance = kind.parse(row);
  const plan = kind.sandboxes(instance, settings);
  const open = async (env = plan.env) =>
    await attachSandbox(await bundle.start(), NO_ABORT, env ?? {});
  const sandbox = await open();
  await kind.init(instance, sandbox, NO_ABORT);
  const scripted = Array.isArray(agent) ? { agent: scriptedAgent(agent, sandbox, player) } : {};
  const outcome = await kind.run(instance, runContext({ sandbox, settings, ...scripted }));
  const judged =
    plan.evaluation === "fresh"
      ? await open(plan.evaluationEnv ?? plan.env)
      : plan.evaluation === "agent"
        ? sandbox
        : null;
  return await kind.evaluate(instance, outcome, evalContext({ sandbox: judged, settings }));
}

/** Runs a script for each part of the task and calls `finish` after it, until there is no more of either. */
function scriptedAgent(scripts: string[], sandbox: Sandbox, { onPrompt }: Player) {
  return async (task: Parameters<ReturnType<typeof runContext>["agent"]>[0]) => {
    if ("fields" in task.prompt) onPrompt?.(task.prompt.fields.instruction ?? "");
    const options = { cwd: task.workdir ?? "/", timeoutMs: 20_000, maxOutputBytes: 1000 };
    for (const script of scripts) {
      await sandbox.exec(["bash", "-c", script], options);
      const next = (await task.onFinish?.("done")) ?? null;
      if (next === null) break;
      onPrompt?.(next);
    }
    return { stopReason: "finish", finalMessage: "" } as const;
  };
}

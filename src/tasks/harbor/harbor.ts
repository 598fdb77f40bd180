import { ServiceError } from "../../errors.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Outcome } from "../../trajectory/record.ts";
import { putArtefacts, takeArtefacts } from "../command/artefacts.ts";
import { needSandbox } from "../need-sandbox.ts";
import { fillImageTemplate } from "../sandbox-plan.ts";
import type { TaskKind } from "../task-kind.ts";
import { type HarborInstance, parseHarborRow } from "./row.ts";
import system from "./system.md" with { type: "text" };
import { putFolder, verify } from "./verify.ts";

const USER = "{{instruction}}";
const SHORT = { timeoutMs: 30_000, maxOutputBytes: 10_000 };

/** A task folder of Harbor's or Terminal-Bench's format, in its own image, scored by its own `tests/test.sh`. */
export const harbor: TaskKind<HarborInstance> = {
  name: "harbor",
  dataSources: ["harbor", "terminal-bench", "terminal_bench"],
  needsBackend: true,
  tools: ["execute_bash", "str_replace_editor", "think", "finish"],
  parse: parseHarborRow,
  sandboxes: ({ image, name, artefacts }, { images }) => ({
    agent: true,
    evaluation: artefacts ? "fresh" : "agent",
    image: images.harbor === undefined ? image : fillImageTemplate(images.harbor, { name }),
  }),

  async init({ workdir }, sandbox, signal) {
    await needSandbox(sandbox).exec(["mkdir", "-p", workdir], { ...SHORT, signal });
  },

  async run({ instruction, workdir, artefacts }, context) {
    const { stopReason, finalMessage } = await context.agent({
      prompt: { texts: { system, user: USER }, fields: { instruction, workdir } },
      tools: harbor.tools,
      workdir,
      maxTurns: 50,
    });
    context.agentDone();
    const { turns } = context.recorder;
    const outcome: Outcome = { stop_reason: stopReason, final_message: finalMessage, turns };
    if (!artefacts) return outcome;
    const sandbox = needSandbox(context.sandbox);
    return { ...outcome, ...(await takeArtefacts(sandbox, artefacts, context.signal)) };
  },

  /** The solution is a script, which EVAL runs where the agent would have worked. */
  golden({ solution }, which) {
    if (which === "solution" && !solution?.["solve.sh"]) {
      throw new ServiceError("invalid_field", "instance.solution lacks solve.sh", {
        field: "instance.solution",
      });
    }
    return { stop_reason: "done", final_message: null, turns: 0, state: { golden: which } };
  },

  rowLimitMs: ({ verifierTimeoutMs }) => verifierTimeoutMs,

  async evaluate(instance, outcome, context) {
    const { signal } = context;
    const inside = needSandbox(context.sandbox);
    const golden = (outcome.state as { golden?: unknown } | undefined)?.golden;
    if (golden === "solution") await solve(instance, inside, signal);
    else if (instance.artefacts) await putArtefacts(inside, outcome.files ?? [], signal);
    // What the agent left running could wait for the verifier.
    else await inside.exec(["bash", "-c", "kill -9 -1"], { ...SHORT, signal });
    return await verify(instance, inside, context);
  },

  control: (instance, context) => verify(instance, needSandbox(context.sandbox), context),
};

async function solve(
  { solution, workdir, verifierTimeoutMs: timeoutMs }: HarborInstance,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<void> {
  await putFolder(sandbox, "/solution", solution ?? {}, signal);
  const script = 'mkdir -p "$1" && cd "$1" && bash /solution/solve.sh';
  const options = { cwd: "/", timeoutMs, maxOutputBytes: 10_000, signal };
  await sandbox.exec(["bash", "-c", script, "solve", workdir], options);
}

import { ServiceError } from "../../errors.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Outcome } from "../../trajectory/record.ts";
import { needSandbox } from "../need-sandbox.ts";
import type { TaskKind } from "../task-kind.ts";
import { putArtefacts, takeArtefacts } from "./artefacts.ts";
import { type CommandInstance, parseCommandRow } from "./row.ts";
import system from "./system.md" with { type: "text" };
import user from "./user.md" with { type: "text" };
import { verify } from "./verify.ts";

const SHORT = { timeoutMs: 30_000, maxOutputBytes: 10_000 };
const MAX_SHOWN = 1000;

/** An environment without code of ours: the row says what is prepared, what is asked, and what verifies. */
export const command: TaskKind<CommandInstance> = {
  name: "command",
  dataSources: ["command"],
  needsBackend: true,
  tools: ["execute_bash", "str_replace_editor", "think", "finish"],
  parse: parseCommandRow,

  sandboxes: ({ image, artefacts }, { images }) => ({
    agent: true,
    evaluation: artefacts ? "fresh" : "agent",
    image: image ?? images.command ?? null,
  }),

  init: (instance, sandbox, signal) => prepare(instance, needSandbox(sandbox), signal),

  async run(instance, context) {
    const { instruction, workdir, tools, artefacts } = instance;
    const { stopReason, finalMessage } = await context.agent({
      prompt: { texts: { system, user }, fields: { instruction, workdir } },
      tools: tools ?? command.tools,
      workdir,
    });
    context.agentDone();
    const { turns } = context.recorder;
    const outcome: Outcome = { stop_reason: stopReason, final_message: finalMessage, turns };
    if (!artefacts) return outcome;
    const taken = await takeArtefacts(needSandbox(context.sandbox), artefacts, context.signal);
    return { ...outcome, ...taken };
  },

  rowLimitMs: ({ verifier, artefacts, setup_timeout_ms }) =>
    verifier.timeout_ms + (artefacts ? setup_timeout_ms : 0),

  async evaluate(instance, outcome, context) {
    const { signal } = context;
    const inside = needSandbox(context.sandbox);
    if (instance.artefacts) {
      const tooLarge = outcome.flags?.find((flag) => flag.startsWith("too_large"));
      if (tooLarge) return { reward: 0, rule: "artefact_too_large", reason: `${tooLarge}.` };
      await prepare(instance, inside, signal);
      await putArtefacts(inside, outcome.files ?? [], signal);
    } else {
      await endProcesses(inside, signal);
    }
    return await verify(instance, inside, context);
  },

  async control(instance, context) {
    const inside = needSandbox(context.sandbox);
    await prepare(instance, inside, context.signal);
    return await verify(instance, inside, context);
  },
};

async function prepare(
  { workdir, files, setup, setup_timeout_ms }: CommandInstance,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<void> {
  await sandbox.exec(["mkdir", "-p", workdir], { ...SHORT, signal });
  for (const [path, text] of Object.entries(files)) {
    await sandbox.writeFile(path, text, 0o644, signal);
  }
  if (setup === "") return;
  const options = { cwd: workdir, timeoutMs: setup_timeout_ms, maxOutputBytes: 10_000, signal };
  const { exitCode, stdout, stderr } = await sandbox.exec(["bash", "-c", setup], options);
  if (exitCode === 0) return;
  const how = exitCode === null ? "did not end in time" : `ended with exit code ${exitCode}`;
  const output = `${stdout}${stderr}`.slice(-MAX_SHOWN);
  throw new ServiceError("instance_invalid", `the row's set-up ${how}: ${output}`);
}

/** What the agent left running could wait for the verifier; it is ended first. PID 1 and the asker stay. */
async function endProcesses(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  await sandbox.exec(["bash", "-c", "kill -9 -1"], { ...SHORT, signal });
}

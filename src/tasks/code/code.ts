import { ServiceError } from "../../errors.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Outcome } from "../../trajectory/record.ts";
import { lastCodeBlock } from "../../verifiers/code-block.ts";
import { needSandbox } from "../need-sandbox.ts";
import type { TaskKind } from "../task-kind.ts";
import { gradeCode } from "./grade.ts";
import { type CodeInstance, parseCodeRow } from "./row.ts";
import system from "./system.md" with { type: "text" };
import user from "./user.md" with { type: "text" };

const FILE = "/workspace/solution.py";
const MAX_FILE_BYTES = 1024 * 1024;

/** Programming problems with hidden tests, which run where the agent never was. */
export const code: TaskKind<CodeInstance> = {
  name: "code",
  dataSources: [
    "code",
    "deepcoder*",
    "codecontests",
    "apps",
    "codeforces",
    "taco",
    "livecodebench",
    "leetcode",
    "agentica-org/DeepCoder-Preview-Dataset",
  ],
  needsBackend: true,
  tools: ["execute_bash", "str_replace_editor", "execute_ipython_cell", "think", "finish"],
  limitsAreVerdicts: true,
  exactNumbers: true,
  parse: parseCodeRow,
  sandboxes: (_instance, { images }) => ({
    agent: true,
    evaluation: "fresh",
    image: images.code ?? null,
  }),

  async init(_instance, sandbox, signal) {
    const argv = ["bash", "-c", "mkdir -p /workspace && python3 --version"];
    const limits = { timeoutMs: 30_000, maxOutputBytes: 1000 };
    const { exitCode, stderr } = await needSandbox(sandbox).exec(argv, { ...limits, signal });
    if (exitCode === 0) return;
    const mend = "use an image with bash and Python 3";
    const message = `the image lacks what programming needs: ${stderr}`;
    throw new ServiceError("image_invalid", message, { mend });
  },

  async run(instance, context) {
    const { stopReason, finalMessage } = await context.agent({
      prompt: { texts: { system, user }, fields: { problem: instance.problem } },
      tools: code.tools,
      workdir: "/workspace",
    });
    context.agentDone();
    const outcome: Outcome = {
      stop_reason: stopReason,
      final_message: finalMessage,
      turns: context.recorder.turns,
    };
    if (lastCodeBlock(finalMessage ?? "") !== null) return outcome;
    return { ...outcome, ...(await takeFile(needSandbox(context.sandbox), context.signal)) };
  },

  async evaluate(instance, outcome, context) {
    const file = outcome.files?.[0];
    const solution =
      lastCodeBlock(outcome.final_message ?? "") ??
      (file ? Buffer.from(file.base64, "base64").toString() : null);
    return await gradeCode(instance, solution, context);
  },
};

/** What lies where the program was to be written, for an agent that has not submitted it. */
async function takeFile(sandbox: Sandbox, signal: AbortSignal): Promise<Partial<Outcome>> {
  try {
    const bytes = await sandbox.readFile(FILE, MAX_FILE_BYTES, signal);
    const base64 = Buffer.from(bytes).toString("base64");
    return { files: [{ path: FILE, base64 }], flags: ["solution_from_file"] };
  } catch (error) {
    signal.throwIfAborted();
    if ((error as Error).name !== "FileError") throw error;
    return { flags: [`no_solution_file: ${(error as Error).message}`] };
  }
}

import { ServiceError } from "../../errors.ts";
import { shellWord } from "../../lib/shell-word.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { needSandbox } from "../need-sandbox.ts";
import type { TaskKind } from "../task-kind.ts";
import { ENVIRONMENT, evaluateChange, SOLUTION_FILE } from "./evaluate.ts";
import { imageOf } from "./images.ts";
import { reversePatch } from "./patch.ts";
import { applyPatch, extractPatch, prepareRepository } from "./repository.ts";
import { parseSweRow, type SweInstance } from "./row.ts";
import system from "./system.md" with { type: "text" };
import user from "./user.md" with { type: "text" };

const PROMPT = { system, user };
const MAX_TURNS = 50;

/** An issue of a real repository, solved by a change that its hidden tests accept. */
export const swe: TaskKind<SweInstance> = {
  name: "swe",
  dataSources: [
    ...["swe", "swebench", "swe-bench", "swegym", "swe-gym", "r2egym", "r2e-gym"],
    ...["swesmith", "swe-smith", "swebench_multimodal", "swe-bench-multimodal"],
    ...["SWE-bench/SWE-bench", "SWE-bench/SWE-bench_Verified", "SWE-bench/SWE-bench_Lite"],
    ...["princeton-nlp/SWE-bench", "princeton-nlp/SWE-bench_Verified"],
    ...["SWE-bench/SWE-bench_Multimodal", "SWE-bench/SWE-smith", "SWE-Gym/SWE-Gym"],
    ...["R2E-Gym/R2E-Gym-Subset", "R2E-Gym/R2E-Gym-Lite"],
  ],
  needsBackend: true,
  tools: ["execute_bash", "str_replace_editor", "finish"],
  parse: parseSweRow,
  sandboxes: (instance, { images }) => ({
    agent: true,
    evaluation: "fresh",
    image: imageOf(instance, images.swe),
  }),

  async init(instance, sandbox, signal) {
    await prepareRepository(instance, needSandbox(sandbox), true, signal);
  },

  async run(instance, context) {
    const { signal, recorder } = context;
    const sandbox = needSandbox(context.sandbox);
    const base = await startingCommit(instance, sandbox, signal);
    const { stopReason, finalMessage } = await context.agent({
      prompt: {
        texts: PROMPT,
        fields: { folder: instance.folder, problem: instance.problem, base_commit: base },
      },
      tools: swe.tools,
      shellStart: `cd -- ${shellWord(instance.folder)}\n${ENVIRONMENT}`,
      maxTurns: MAX_TURNS,
    });
    context.agentDone();
    const { patch, flags } = await extractPatch(instance, base, sandbox, signal);
    return {
      stop_reason: stopReason,
      final_message: finalMessage,
      turns: recorder.turns,
      ...patchParts(patch),
      ...(flags.length === 0 ? {} : { flags }),
    };
  },

  golden(instance, which) {
    const nothing = { stop_reason: "done", final_message: null, turns: 0 } as const;
    return { ...nothing, patch: which === "nothing" ? "" : solutionOf(instance) };
  },

  async solve(instance, { sandbox, signal }) {
    const patch = Buffer.from(solutionOf(instance));
    const inside = needSandbox(sandbox);
    const refused = await applyPatch(SOLUTION_FILE, patch, instance.folder, inside, signal);
    if (refused === null) return;
    const message = `the row's patch does not apply to its image: ${refused}`;
    throw new ServiceError("instance_invalid", message, { mend: "check base_commit and image" });
  },

  evaluate: (instance, outcome, { sandbox, signal }) =>
    evaluateChange(instance, outcome, needSandbox(sandbox), signal),
};

/** @throws ServiceError `invalid_field` where the row has none. */
function solutionOf({ solution, bug }: SweInstance): string {
  if (solution !== null) return solution;
  if (bug !== null) return reversePatch(bug);
  throw new ServiceError("invalid_field", "instance.patch is missing: the row has no solution", {
    field: "instance.patch",
  });
}

/** Before the agent begins: afterwards nothing in its sandbox is known. */
async function startingCommit(
  { folder }: SweInstance,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<string> {
  const ref = await sandbox.readFile(`${folder}/.git/refs/heads/main`, 1000, signal);
  return Buffer.from(ref).toString().trim();
}

/** As text for people and trainers; where it is none, the bytes as well, because EVAL needs all of them. */
function patchParts(patch: Buffer | null) {
  if (patch === null) return {};
  const text = patch.toString();
  if (Buffer.from(text).equals(patch)) return { patch: text };
  return { patch: text, state: { patch_base64: patch.toString("base64") } };
}

import { checkAnswer, requireJudge } from "../answer-check.ts";
import type { TaskKind } from "../task-kind.ts";
import { parseStemRow, type StemInstance } from "./row.ts";
import { searchTool } from "./search-tool.ts";
import system from "./system.md" with { type: "text" };
import user from "./user.md" with { type: "text" };

/** How an answer is to be given, by the way in which it is graded. */
const FORMS = {
  boxed: "gives the final answer as \\boxed{...}.",
  letter: "gives the letter of the right option as \\boxed{X}.",
  colon: "ends with a line `Answer: X`, where X is the letter of the right option.",
};

function formOf({ check }: StemInstance): string {
  if (check.kind === "judge") return FORMS.boxed;
  return check.question.mode.startsWith("lenient_answer_colon") ? FORMS.colon : FORMS.letter;
}

/** Questions of science: multiple choice, or free answers that a judge compares. */
export const stem: TaskKind<StemInstance> = {
  name: "stem",
  dataSources: ["stem", "mcqa", "gpqa*"],
  needsBackend: true,
  tools: ["execute_ipython_cell", "think", "finish"],
  parse: parseStemRow,

  sandboxes({ check }, settings) {
    requireJudge(check, settings);
    return { agent: true, evaluation: "none", image: settings.images.stem ?? null };
  },

  init: async () => {},

  async run(instance, context) {
    const fields = { problem: instance.problem, form: formOf(instance) };
    const { search } = context.settings;
    const { stopReason, finalMessage } = await context.agent({
      prompt: { texts: { system, user }, fields },
      tools: stem.tools,
      ...(search && { ownTools: [searchTool(search, context.signal)] }),
    });
    const { turns } = context.recorder;
    return { stop_reason: stopReason, final_message: finalMessage, turns };
  },

  evaluate: ({ check }, outcome, { settings, signal }) =>
    checkAnswer(check, outcome.final_message, settings, signal),
};

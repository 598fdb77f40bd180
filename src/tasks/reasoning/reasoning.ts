import type { Tool } from "../../agent/tool.ts";
import { afterThinking } from "../../verifiers/after-thinking.ts";
import { lastCodeBlock } from "../../verifiers/code-block.ts";
import { gradeInstructions } from "../../verifiers/instructions/grade.ts";
import { gradeMathAnswer } from "../../verifiers/math-answer.ts";
import { callsInText, gradeToolCalls, type MadeCall } from "../../verifiers/tool-calls.ts";
import { checkAnswer, requireJudge } from "../answer-check.ts";
import { gradeCode } from "../code/grade.ts";
import type { TaskKind } from "../task-kind.ts";
import { parseReasoningRow, type ReasoningInstance } from "./row.ts";

/** One completion, without sandbox and without tools of ours; what is right depends on the row. */
export const reasoning: TaskKind<ReasoningInstance> = {
  name: "reasoning",
  dataSources: ["reasoning", "rStar", "tool_call", "if_eval", "ifeval", "llm_judge"],
  needsBackend: true,
  tools: [],
  limitsAreVerdicts: true,
  parse: parseReasoningRow,

  sandboxes({ check }, settings) {
    requireJudge(check, settings);
    const evaluation = check.kind === "code" ? "fresh" : "none";
    return { agent: false, evaluation, image: settings.images.reasoning ?? null };
  },

  init: async () => {},

  async run(instance, context) {
    const made: MadeCall[] = [];
    const { stopReason, finalMessage } = await context.agent({
      prompt: { messages: instance.messages },
      tools: [],
      ownTools: instance.tools.map((schema) => noting(schema, made)),
      singleTurn: true,
      isAnswer: () => true,
    });
    return {
      stop_reason: made.length > 0 ? "answer" : stopReason,
      final_message: finalMessage,
      turns: context.recorder.turns,
      ...(made.length > 0 ? { state: { calls: made } } : {}),
    };
  },

  async evaluate({ check }, outcome, { sandbox, settings, signal }) {
    const message = outcome.final_message;
    switch (check.kind) {
      case "math":
        return await gradeMathAnswer(message, check.truths);
      case "code": {
        if (!sandbox) throw new Error("tests of code came without their sandbox");
        const solution = message === null ? null : lastCodeBlock(afterThinking(message));
        return await gradeCode(check.instance, solution, sandbox, settings, signal);
      }
      case "instructions":
        return await gradeInstructions(check.instructions, message, check.grading);
      case "tool_calls": {
        const { calls } = (outcome.state ?? {}) as { calls?: MadeCall[] };
        return gradeToolCalls(calls ?? callsInText(message ?? ""), check.expected);
      }
      default:
        return await checkAnswer(check, message, settings, signal);
    }
  },
};

/** A tool of the row's that does nothing: that it is called, and with what, is the answer. */
function noting(schema: Tool["schema"], made: MadeCall[]): Tool {
  return {
    schema,
    run: async (args) => {
      made.push({ name: schema.function.name, arguments: args });
      return { text: "noted", ok: true };
    },
  };
}

import { PYTHON_START_TIMEOUT_MS } from "../../agent/ipython-tool.ts";
import { ServiceError } from "../../errors.ts";
import { afterThinking } from "../../verifiers/after-thinking.ts";
import { lastBoxed } from "../../verifiers/boxed.ts";
import { gradeMathAnswer } from "../../verifiers/math-answer.ts";
import { MAX_OBSERVATION_BYTES } from "../drive-agent.ts";
import { needSandbox } from "../need-sandbox.ts";
import type { TaskKind } from "../task-kind.ts";
import { type MathInstance, parseMathRow } from "./row.ts";
import system from "./system.md" with { type: "text" };
import user from "./user.md" with { type: "text" };

const PROMPT = { system, user };

/** Loading these while the job waits for RUN takes a second off the first cell. */
const WARM_UP = "import math, cmath\nimport numpy as np\nimport sympy";
const WARM_UP_TIMEOUT_MS = 60_000;

/** Competition mathematics with IPython at hand, answered in `\boxed{}`. */
export const math: TaskKind<MathInstance> = {
  name: "math",
  dataSources: [
    ...["math", "deepscaler", "agentica-org/DeepScaleR-Preview-Dataset"],
    // As the preparing scripts of trainers name sets of the same rows.
    ...["math_dapo", "gsm8k", "openai/gsm8k", "aime*", "HuggingFaceH4/MATH-500"],
    ...["lighteval/MATH", "DigitalLearningGmbH/MATH-lighteval"],
  ],
  needsBackend: true,
  tools: ["execute_ipython_cell", "think", "finish"],
  parse: parseMathRow,
  sandboxes: () => ({ agent: true, evaluation: "none", image: null }),

  async init(_instance, sandbox, signal) {
    const start = { startTimeoutMs: PYTHON_START_TIMEOUT_MS, signal };
    const python = await needSandbox(sandbox).python(start);
    const options = {
      timeoutMs: WARM_UP_TIMEOUT_MS,
      maxOutputBytes: MAX_OBSERVATION_BYTES,
      signal,
    };
    const { ok, output, timedOut } = await python.run(WARM_UP, options);
    if (timedOut) {
      const message = `numpy and sympy were not loaded within ${WARM_UP_TIMEOUT_MS} ms`;
      throw new ServiceError("sandbox_start_failed", message);
    }
    if (!ok) {
      const mend = "use an image with Python 3, numpy and sympy";
      throw new ServiceError("image_invalid", `the image lacks what math needs: ${output}`, {
        mend,
      });
    }
  },

  async run(instance, context) {
    const { stopReason, finalMessage } = await context.agent({
      prompt: { texts: PROMPT, fields: { problem: instance.problem } },
      tools: math.tools,
      isAnswer: (content) => lastBoxed(afterThinking(content)) !== null,
    });
    return { stop_reason: stopReason, final_message: finalMessage, turns: context.recorder.turns };
  },

  evaluate: (instance, outcome) =>
    gradeMathAnswer(outcome.final_message, instance.truths, instance.problem),
};

import { PYTHON_START_TIMEOUT_MS } from "../../agent/ipython-tool.ts";
import { runAgent } from "../../agent/loop.ts";
import { createTools } from "../../agent/tools.ts";
import { ServiceError } from "../../errors.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { lastBoxed } from "../../verifiers/boxed.ts";
import { gradeMathAnswer } from "../../verifiers/math-answer.ts";
import type { TaskKind } from "../task-kind.ts";
import { mathPrompt } from "./prompt.ts";
import { type MathInstance, parseMathRow } from "./row.ts";

const DEFAULT_MAX_TURNS = 20;
const DEFAULT_TOOL_TIMEOUT_MS = 30_000;
const MAX_OBSERVATION_BYTES = 10_000;

/** Loading these while the job waits for RUN takes a second off the first cell. */
const WARM_UP = "import math, cmath\nimport numpy as np\nimport sympy";
const WARM_UP_TIMEOUT_MS = 60_000;

/** Competition mathematics with IPython at hand, answered in `\boxed{}`. */
export const math: TaskKind<MathInstance> = {
  name: "math",
  dataSources: ["math", "deepscaler"],
  needsBackend: true,
  tools: ["execute_ipython_cell", "think", "finish"],
  parse: parseMathRow,
  sandboxes: () => ({ agent: true, evaluation: "none", image: null }),

  async init(_instance, sandbox, signal) {
    const start = { startTimeoutMs: PYTHON_START_TIMEOUT_MS, signal };
    const python = await required(sandbox).python(start);
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
    const { options, sandbox, signal, recorder } = context;
    const quietMs = options.agent?.tool_quiet_ms;
    const limits = {
      toolTimeoutMs: options.agent?.tool_timeout_ms ?? DEFAULT_TOOL_TIMEOUT_MS,
      maxOutputBytes: MAX_OBSERVATION_BYTES,
      ...(quietMs === undefined ? {} : { quietMs }),
    };
    const tools = createTools(options.agent?.tools ?? math.tools, { sandbox, limits, signal });
    const schemas = tools.map((tool) => tool.schema);
    const { stopReason, finalMessage } = await runAgent({
      dialogue: await context.converse(mathPrompt(instance.problem), schemas),
      backendId: context.backendId ?? "",
      tools,
      maxTurns: options.agent?.max_turns ?? DEFAULT_MAX_TURNS,
      recorder,
      signal,
      isAnswer: (content) => lastBoxed(content) !== null,
    });
    return { stop_reason: stopReason, final_message: finalMessage, turns: recorder.turns };
  },

  evaluate: (instance, outcome) => gradeMathAnswer(outcome.final_message, instance.truths),
};

function required(sandbox: Sandbox | null): Sandbox {
  if (sandbox) return sandbox;
  throw new Error("a math job came without its sandbox");
}

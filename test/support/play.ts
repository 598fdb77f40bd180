import { TextDialogue } from "../../src/agent/text-dialogue.ts";
import type { Message, ToolSchema } from "../../src/inference/engine.ts";
import type { EvalContext, RunContext, TaskKind } from "../../src/tasks/task-kind.ts";
import type { Outcome } from "../../src/trajectory/record.ts";
import { BACKEND, FakeEngine, type Scripted } from "./fake-engine.ts";
import { evalContext, runContext } from "./task-context.ts";

/** Opens conversations with a scripted model, as a worker would. */
export function conversing(engine: FakeEngine): RunContext["converse"] {
  const limits = { callTimeoutMs: 1000, maxReplyBytes: 1_000_000 };
  const fixed = { jobId: "j", engine, backend: BACKEND, sampling: {}, ...limits };
  return async (prompt: Message[], tools: ToolSchema[]) =>
    new TextDialogue(prompt, { ...fixed, tools });
}

/** RUN of a row with a scripted model, and EVAL of what it left, without the worker around them. */
export function play<I>(
  kind: TaskKind<I>,
  row: Record<string, unknown>,
  script: Scripted[],
  run: Partial<RunContext> = {},
) {
  const engine = new FakeEngine(script);
  const converse = conversing(engine);
  const instance = kind.parse(row);
  const context = runContext({ converse, backendId: BACKEND.id, ...run });
  return {
    engine,
    instance,
    run: () => kind.run(instance, context),
    /** As another thread would get it: through JSON. */
    async verdict(evaluation: Partial<EvalContext> = {}) {
      const outcome: Outcome = JSON.parse(JSON.stringify(await kind.run(instance, context)));
      const settings = run.settings ?? evalContext().settings;
      return await kind.evaluate(instance, outcome, evalContext({ settings, ...evaluation }));
    },
    prompt: () => engine.requests[0]?.messages.map(({ content }) => content).join("\n") ?? "",
    toolNames: () => engine.requests[0]?.tools.map((tool) => tool.function.name),
  };
}

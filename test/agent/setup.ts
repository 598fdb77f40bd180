import { runAgent } from "../../src/agent/loop.ts";
import { type AgentRules, DEFAULT_RULES } from "../../src/agent/rules.ts";
import { TextDialogue } from "../../src/agent/text-dialogue.ts";
import type { Tool, ToolResult } from "../../src/agent/tool.ts";
import { toolSchema } from "../../src/agent/tool.ts";
import type { Message } from "../../src/inference/engine.ts";
import type { Trajectory } from "../../src/trajectory/record.ts";
import { Recorder } from "../../src/trajectory/recorder.ts";
import { BACKEND, FakeEngine, type Scripted } from "../support/fake-engine.ts";

export const PROMPT: Message[] = [{ role: "user", content: "Go." }];

type Options = {
  script: Scripted[];
  maxTurns?: number;
  rules?: Partial<AgentRules>;
  /** What the tool `think` does; it answers "noted" unless told otherwise. */
  think?: (args: Record<string, unknown>) => Promise<ToolResult>;
  onFinish?: (message: string) => Promise<string | null>;
};

/** A rollout of a scripted model with two tools, `think` and `finish`. An answer starts with "Answer:". */
export function setup({ script, maxTurns = 10, rules, think, onFinish }: Options) {
  const engine = new FakeEngine(script);
  const recorder = new Recorder("job-1", 1);
  const abort = new AbortController();
  const thoughts: Record<string, unknown>[] = [];
  const tools: Tool[] = [
    {
      schema: toolSchema("think", "Think.", {}, []),
      async run(args) {
        thoughts.push(args);
        return (await think?.(args)) ?? { text: "noted", ok: true };
      },
    },
    {
      schema: toolSchema("finish", "End.", {}, []),
      run: async ({ message }) => ({ text: "", ok: true, finish: String(message) }),
    },
  ];
  const dialogue = new TextDialogue(PROMPT, {
    ...{ jobId: "job-1", engine, backend: BACKEND, callTimeoutMs: 1234 },
    maxReplyBytes: 5678,
    sampling: { temperature: 0.5 },
    tools: tools.map((tool) => tool.schema),
  });
  return {
    engine,
    abort,
    thoughts,
    tools,
    run: () =>
      runAgent({
        dialogue,
        backendId: BACKEND.id,
        tools,
        rules: { ...DEFAULT_RULES, maxTurns, ...rules },
        recorder,
        signal: abort.signal,
        isAnswer: (content) => content.startsWith("Answer:"),
        onFinish,
      }),
    trajectory: (): Trajectory => JSON.parse(recorder.toJson()),
    /** Role and text of every message, which is what most tests think at. */
    conversation: (): string[] =>
      JSON.parse(recorder.toJson()).messages.map(
        ({ role, content }: Message) => `${role}: ${content}`,
      ),
  };
}

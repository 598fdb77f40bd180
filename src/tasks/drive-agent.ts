import { type AgentOutcome, runAgent } from "../agent/loop.ts";
import { McpServer } from "../agent/mcp/mcp-server.ts";
import { type AgentRules, DEFAULT_RULES } from "../agent/rules.ts";
import type { Tool, ToolLimits, ToolName } from "../agent/tool.ts";
import { createTools } from "../agent/tools.ts";
import type { Message } from "../inference/engine.ts";
import { shellWord } from "../lib/shell-word.ts";
import type { RolloutOptions } from "../protocol/rollout.ts";
import { type PromptTexts, renderPrompt } from "./prompt.ts";
import type { AgentDefaults } from "./settings.ts";
import type { RunContext } from "./task-kind.ts";

const DEFAULT_MAX_TURNS = 20;
const DEFAULT_TOOL_TIMEOUT_MS = 30_000;

/** As much of a tool's output as upstream shows to the model. */
export const MAX_OBSERVATION_BYTES = 10_000;

/** What a kind wants of the agent loop. */
export type AgentTask = {
  /** Texts with placeholders, which a rollout may replace; or a row's messages, of which only the system's. */
  prompt: { texts: PromptTexts; fields: Record<string, string> } | { messages: Message[] };
  /** Where the agent's shell and session begin; it must be there. */
  workdir?: string;
  /** Unless the rollout asks for others. */
  tools: readonly ToolName[];
  /** Tools of the kind's own, beside those. */
  ownTools?: Tool[];
  /** What each shell of the agent's runs before its first command. */
  shellStart?: string;
  /** Unless the rollout or the service says otherwise. */
  maxTurns?: number;
  /** One call of the model and no more, without the tools that a rollout may ask for. */
  singleTurn?: boolean;
  /** Whether a message without a tool call is already the answer. By default none is. */
  isAnswer?(content: string): boolean;
  /** Called when the model calls `finish`: the next part of the task, as that call's answer, or null for the end. */
  onFinish?(message: string): Promise<string | null>;
};

/** The agent loop as the rollout, the service and the kind want it, in this order of weight. */
export async function driveAgent(
  context: Omit<RunContext, "agent">,
  task: AgentTask,
): Promise<AgentOutcome> {
  const { options, sandbox, signal, settings } = context;
  const agent = options.agent ?? {};
  const limits = toolLimits(agent);
  const names = task.singleTurn ? task.tools : (agent.tools ?? task.tools);
  const tools = [
    ...createTools(names, { sandbox, limits, signal, ...beginning(task) }),
    ...(task.ownTools ?? []),
  ];
  const addresses = task.singleTurn ? [] : context.mcpServers;
  await using servers = new AsyncDisposableStack();
  for (const address of addresses) {
    const server = servers.use(await McpServer.connect(address, limits, signal));
    tools.push(...server.tools.map((tool) => unambiguous(tool, tools, address.name)));
  }
  const prompt =
    "messages" in task.prompt
      ? withSystem(task.prompt.messages, agent.system_prompt)
      : renderPrompt(task.prompt.texts, agent, task.prompt.fields);
  const rules = rulesOf(agent, settings.agent, task.maxTurns ?? DEFAULT_MAX_TURNS);
  return await runAgent({
    dialogue: await context.converse(
      prompt,
      tools.map((tool) => tool.schema),
    ),
    backendId: context.backendId ?? "",
    tools,
    rules: task.singleTurn ? { ...rules, maxTurns: 1 } : rules,
    recorder: context.recorder,
    signal,
    isAnswer: task.isAnswer ?? (() => false),
    onFinish: task.onFinish,
  });
}

/** A tool whose name there is already gets that of its server in front. */
function unambiguous(tool: Tool, others: readonly Tool[], server: string): Tool {
  const { function: described } = tool.schema;
  if (!others.some(({ schema }) => schema.function.name === described.name)) return tool;
  const name = `${server}_${described.name}`;
  return {
    schema: { ...tool.schema, function: { ...described, name } },
    run: (args) => tool.run(args),
  };
}

function withSystem(messages: Message[], system: string | undefined): Message[] {
  if (system === undefined) return messages;
  const rest = messages.filter(({ role }) => role !== "system");
  return system === "" ? rest : [{ role: "system", content: system }, ...rest];
}

/** Where tools begin, and what a shell does before it is used. */
function beginning({ shellStart, workdir }: AgentTask) {
  const cd = workdir === undefined ? [] : [`cd -- ${shellWord(workdir)}`];
  const lines = [...cd, ...(shellStart === undefined ? [] : [shellStart])];
  return {
    ...(lines.length > 0 ? { shellStart: lines.join("\n") } : {}),
    ...(workdir === undefined ? {} : { workdir }),
  };
}

type AgentOptions = NonNullable<RolloutOptions["agent"]>;

function toolLimits(agent: AgentOptions): ToolLimits {
  const quietMs = agent.tool_quiet_ms;
  return {
    toolTimeoutMs: agent.tool_timeout_ms ?? DEFAULT_TOOL_TIMEOUT_MS,
    maxOutputBytes: MAX_OBSERVATION_BYTES,
    ...(quietMs === undefined ? {} : { quietMs }),
  };
}

function rulesOf(agent: AgentOptions, service: AgentDefaults, maxTurns: number): AgentRules {
  const reminder = agent.reminder ?? service.reminder;
  return {
    maxTurns: agent.max_turns ?? service.maxTurns ?? maxTurns,
    stuck: agent.stuck ?? service.stuck,
    maxIdleTurns: agent.max_idle_turns ?? service.maxIdleTurns,
    reminders: reminder === null ? DEFAULT_RULES.reminders : [reminder, reminder],
    forcedFinish: agent.forced_finish ?? service.forcedFinish,
    maxSampledTokens: agent.max_sampled_tokens ?? service.maxSampledTokens,
    maxContextTokens: agent.max_context_tokens ?? service.maxContextTokens,
  };
}

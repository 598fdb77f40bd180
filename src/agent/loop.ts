import { ServiceError } from "../errors.ts";
import type {
  Backend,
  ChatReply,
  EngineClient,
  Message,
  Sampling,
  ToolCall,
} from "../inference/engine.ts";
import type { StopReason } from "../trajectory/record.ts";
import type { Recorder } from "../trajectory/recorder.ts";
import { isLooping, type Step } from "./stop-rules.ts";
import type { Tool, ToolResult } from "./tool.ts";

export type AgentOptions = {
  jobId: string;
  engine: EngineClient;
  backend: Backend;
  sampling: Sampling;
  prompt: Message[];
  tools: Tool[];
  maxTurns: number;
  callTimeoutMs: number;
  maxReplyBytes: number;
  recorder: Recorder;
  signal: AbortSignal;
  /** Whether a message without a tool call is already the answer. */
  isAnswer(content: string): boolean;
};

export type AgentOutcome = { stopReason: StopReason; finalMessage: string | null };

const CONTINUE =
  "Please continue working on the task. When you have solved it, call the finish tool with your answer. Never ask for human help.";

/** So often it is asked to go on; a model that then still calls no tool is not going to. */
const MAX_IDLE_TURNS = 2;

/**
 * Drives the turns of one rollout until a stop rule holds. Everything is in `recorder` as it happens, so a
 * rollout that is aborted keeps what it has.
 *
 * @throws ServiceError `engine_*`, `sandbox_*`, and the abort reason of `signal`.
 */
export async function runAgent(options: AgentOptions): Promise<AgentOutcome> {
  const { recorder, tools, signal } = options;
  recorder.begin(
    options.prompt,
    tools.map((tool) => tool.schema),
  );
  const steps: Step[] = [];
  let idleTurns = 0;
  for (let turn = 0; turn < options.maxTurns; turn++) {
    const reply = await callModel(options, turn);
    if (reply === "context") return stop(recorder, "context", null);
    signal.throwIfAborted();
    const calls = reply.message.tool_calls ?? [];
    if (reply.finishReason === "length") return stop(recorder, "length", reply.message.content);
    if (calls.length === 0) {
      const { content } = reply.message;
      if (options.isAnswer(content)) return stop(recorder, "answer", content);
      if (++idleTurns > MAX_IDLE_TURNS) return stop(recorder, "loop", content);
      if (turn + 1 < options.maxTurns) recorder.say({ role: "user", content: CONTINUE });
      continue;
    }
    idleTurns = 0;
    for (const call of calls) {
      const result = await runTool(options, call, steps);
      if (result.finish !== undefined) return stop(recorder, "finish", result.finish);
    }
    if (isLooping(steps)) return stop(recorder, "loop", null);
  }
  return stop(recorder, "max_turns", null);
}

function stop(recorder: Recorder, stopReason: StopReason, finalMessage: string | null) {
  recorder.stop(stopReason);
  return { stopReason, finalMessage };
}

async function callModel(options: AgentOptions, turn: number): Promise<ChatReply | "context"> {
  const { engine, backend, recorder, signal } = options;
  const request = {
    messages: [...recorder.messages],
    tools: options.tools.map((tool) => tool.schema),
    sampling: options.sampling,
    timeoutMs: options.callTimeoutMs,
    maxReplyBytes: options.maxReplyBytes,
    sessionId: options.jobId,
    requestId: `${options.jobId}.${turn}`,
  };
  try {
    const reply = await engine.chat(backend, request, signal);
    recorder.call(backend.id, reply);
    if (reply.finishReason === "abort") {
      const message = `backend ${backend.id} broke off its answer`;
      throw new ServiceError("engine_aborted", message);
    }
    return reply;
  } catch (error) {
    if (error instanceof ServiceError && error.code === "context_exhausted") return "context";
    throw error;
  }
}

async function runTool(options: AgentOptions, call: ToolCall, steps: Step[]): Promise<ToolResult> {
  const startMs = performance.now();
  const { name, arguments: text } = call.function;
  const result = await invoke(options.tools, name, text);
  options.signal.throwIfAborted();
  if (result.finish !== undefined) return result;
  const durationMs = Math.round((performance.now() - startMs) * 1000) / 1000;
  options.recorder.observe(
    { role: "tool", content: result.text, tool_call_id: call.id },
    { name, duration_ms: durationMs, ok: result.ok },
  );
  steps.push({ action: `${name} ${text}`, observation: result.text, ok: result.ok });
  return result;
}

/** A call that can't be carried out is the model's mistake: it is told, and may try again. */
async function invoke(tools: Tool[], name: string, text: string): Promise<ToolResult> {
  const tool = tools.find((candidate) => candidate.schema.function.name === name);
  if (!tool) {
    const names = tools.map((candidate) => candidate.schema.function.name).join(", ");
    return { text: `ERROR: there is no tool "${name}". The tools are: ${names}.`, ok: false };
  }
  const args = parseArguments(text);
  if (typeof args === "string") return { text: `ERROR: ${args}`, ok: false };
  return tool.run(args);
}

function parseArguments(text: string): Record<string, unknown> | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `the arguments are not valid JSON: ${(error as Error).message}`;
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  return "the arguments must be a JSON object";
}

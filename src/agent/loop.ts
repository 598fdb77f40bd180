import { ServiceError } from "../errors.ts";
import type { Message, ToolCall } from "../inference/engine.ts";
import { isDeeper, MAX_JSON_DEPTH } from "../lib/is-deeper.ts";
import { isObject } from "../lib/is-object.ts";
import type { StopReason, ToolStatus } from "../trajectory/record.ts";
import type { Recorder } from "../trajectory/recorder.ts";
import { TokenBudget } from "./budget.ts";
import type { Dialogue, ModelTurn } from "./dialogue.ts";
import { type AgentRules, LAST_TURN } from "./rules.ts";
import { isLooping, isRepeating, type Step } from "./stop-rules.ts";
import type { Tool, ToolResult } from "./tool.ts";

export type AgentOptions = {
  dialogue: Dialogue;
  /** Where the model's messages come from, for the record. */
  backendId: string;
  tools: Tool[];
  rules: AgentRules;
  recorder: Recorder;
  signal: AbortSignal;
  /** Whether a message without a tool call is already the answer. */
  isAnswer(content: string): boolean;
  /** Answers `finish` with the next part of the task; null ends the rollout. */
  onFinish?: ((message: string) => Promise<string | null>) | undefined;
};

export type AgentOutcome = { stopReason: StopReason; finalMessage: string | null };

/**
 * Drives the turns of one rollout until a stop rule holds. Everything is in `recorder` as it happens, so a
 * rollout that is aborted keeps what it has.
 *
 * @throws ServiceError `engine_*`, `sandbox_*`, and the abort reason of `signal`.
 */
export async function runAgent(options: AgentOptions): Promise<AgentOutcome> {
  const { recorder, dialogue, tools, rules, signal } = options;
  const schemas = tools.map((tool) => tool.schema);
  recorder.begin(dialogue.messages, schemas, () => dialogue.segments());
  const steps: Step[] = [];
  const budget = new TokenBudget(rules);
  let idle: string[] = [];
  let reminded = 0;
  for (let turn = 0; turn < rules.maxTurns; turn++) {
    const last = turn + 1 === rules.maxTurns;
    if (last && turn > 0 && rules.forcedFinish) say(options, { role: "user", content: LAST_TURN });
    const reply = await callModel(options, turn);
    if (reply === "context") return stop(recorder, "context", null);
    signal.throwIfAborted();
    const calls = reply.message.tool_calls ?? [];
    const { content } = reply.message;
    if (reply.finishReason === "length") {
      for (const call of calls) notCarriedOut(recorder, call);
      return stop(recorder, "length", content);
    }
    const spent = budget.spend(reply);
    if (calls.length === 0) {
      if (options.isAnswer(content)) return stop(recorder, "answer", content);
      idle.push(content);
      if (idle.length === rules.maxIdleTurns) return stop(recorder, "loop", content);
      if (isRepeating(idle, rules.stuck)) return stop(recorder, "loop", content);
      if (spent) return stop(recorder, spent, content);
      // The word about the last turn takes the reminder's place: templates want one user message.
      if (last || (rules.forcedFinish && turn + 2 === rules.maxTurns)) continue;
      say(options, { role: "user", content: rules.reminders[reminded++ === 0 ? 0 : 1] });
      continue;
    }
    idle = [];
    for (const call of calls) {
      const result = await runTool(options, call, reply, steps);
      if (result.finish !== undefined) return stop(recorder, "finish", result.finish);
    }
    if (isLooping(steps, rules.stuck)) return stop(recorder, "loop", null);
    if (spent) return stop(recorder, spent, null);
  }
  return stop(recorder, "max_turns", null);
}

function stop(recorder: Recorder, stopReason: StopReason, finalMessage: string | null) {
  recorder.stop(stopReason);
  return { stopReason, finalMessage };
}

function say({ dialogue, recorder }: AgentOptions, message: Message): void {
  dialogue.add(message);
  recorder.say(dialogue.messages.at(-1) ?? message);
}

async function callModel(options: AgentOptions, turn: number): Promise<ModelTurn | "context"> {
  const { dialogue, backendId, recorder, signal } = options;
  try {
    recorder.calling();
    const reply = await dialogue.next(turn, signal);
    recorder.call(reply.backendId ?? backendId, reply);
    if (reply.finishReason !== "abort") return reply;
    throw new ServiceError("engine_aborted", `backend ${backendId} broke off its answer`);
  } catch (error) {
    const { cutOff } = dialogue;
    if (cutOff) recorder.call(cutOff.backendId ?? backendId, cutOff);
    if (error instanceof ServiceError && error.code === "context_exhausted") return "context";
    throw error;
  }
}

async function runTool(
  options: AgentOptions,
  call: ToolCall,
  { malformedCalls }: ModelTurn,
  steps: Step[],
): Promise<ToolResult> {
  const startMs = performance.now();
  options.recorder.carryOut(call);
  const { name, arguments: text } = call.function;
  const malformed = malformedCalls.get(call.id);
  const called = malformed
    ? refusal(malformed.status, malformed.problem)
    : await invoke(options.tools, name, text);
  const { status, ...result } = await continued(options, called);
  options.signal.throwIfAborted();
  const durationMs = Math.round((performance.now() - startMs) * 1000) / 1000;
  const run = { name, status, duration_ms: durationMs };
  if (result.finish !== undefined) {
    options.recorder.observe(null, run);
    return result;
  }
  // Half a character, as a cut or the model's own words may leave one, is no UTF-8: engines fail at it.
  const content = result.text.toWellFormed();
  const message = { role: "tool", content, tool_call_id: call.id } as const;
  options.dialogue.add(message);
  options.recorder.observe(lastObservation(options.dialogue) ?? message, run);
  steps.push({
    action: `${name} ${text}`,
    observation: result.outcome ?? result.text,
    ok: result.ok,
  });
  return result;
}

/** What the conversation took, which is what was recorded where a paused rollout is gone on with. */
function lastObservation({ messages }: Dialogue) {
  const last = messages.at(-1);
  return last?.role === "tool" ? last : null;
}

type Called = ToolResult & { status: ToolStatus };

/** A call that can't be carried out is the model's mistake: it is told, and may try again. */
async function invoke(tools: Tool[], name: string, text: string): Promise<Called> {
  const tool = tools.find((candidate) => candidate.schema.function.name === name);
  if (!tool) {
    const names = tools.map((candidate) => candidate.schema.function.name).join(", ");
    return refusal("unknown_tool", `there is no tool "${name}". The tools are: ${names}`);
  }
  const args = parseArguments(text);
  if (typeof args === "string") return refusal("malformed", args);
  const result = await tool.run(args);
  return { ...result, status: result.ok ? "ok" : result.timedOut ? "timeout" : "tool_error" };
}

/** A `finish` that has a further part of the task for its answer ends nothing. */
async function continued({ onFinish }: AgentOptions, called: Called): Promise<Called> {
  if (called.finish === undefined || !onFinish) return called;
  const text = await onFinish(called.finish);
  return text === null ? called : { text, ok: true, status: called.status };
}

function refusal(status: ToolStatus, problem: string): Called {
  return { text: `ERROR: ${problem}.`, ok: false, status };
}

/** A turn that was cut off ends the rollout, so none of its calls is answered. */
function notCarriedOut(recorder: Recorder, { function: { name } }: ToolCall): void {
  recorder.observe(null, { name, status: "truncated", duration_ms: 0 });
}

function parseArguments(text: string): Record<string, unknown> | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `the arguments are not valid JSON: ${(error as Error).message}`;
  }
  if (!isObject(value)) return "the arguments must be a JSON object";
  if (!isDeeper(value)) return value;
  return `the arguments have more than ${MAX_JSON_DEPTH} lists and objects within each other`;
}

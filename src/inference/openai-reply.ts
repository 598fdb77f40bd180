import { z } from "zod";
import { ServiceError } from "../errors.ts";
import type { AssistantMessage, ChatReply, FinishReason, ToolCall } from "./engine.ts";
import { readUsage, usageSchema } from "./wires/vllm.ts";

/**
 * Only what is read. Tool calls are taken as they come: what the model wrote badly is for it to
 * learn.
 */
const replySchema = z.object({
  choices: z
    .array(
      z.object({
        message: z.object({
          content: z.string().nullish(),
          reasoning_content: z.string().nullish(),
          reasoning: z.string().nullish(),
          tool_calls: z.array(z.unknown()).nullish(),
        }),
        finish_reason: z.string(),
      }),
    )
    .min(1),
  usage: usageSchema,
});

const FINISH_REASONS: Record<string, FinishReason> = {
  stop: "stop",
  tool_calls: "tool_calls",
  function_call: "tool_calls",
  length: "length",
  abort: "abort",
};

/**
 * Reads a chat completion.
 *
 * @throws ServiceError `engine_bad_reply` that names the field.
 */
export function readChatReply(shown: string, value: unknown): Omit<ChatReply, "durationMs"> {
  const parsed = replySchema.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw bad(shown, `${issue?.path.join(".") || "the reply"}: ${issue?.message}`);
  }
  const [choice] = parsed.data.choices;
  if (!choice) throw bad(shown, "choices is empty");
  const finishReason = FINISH_REASONS[choice.finish_reason];
  if (finishReason === undefined) {
    throw bad(shown, `choices.0.finish_reason is "${choice.finish_reason.slice(0, 50)}"`);
  }
  const { content, reasoning_content, reasoning, tool_calls } = choice.message;
  const message: AssistantMessage = { role: "assistant", content: content ?? "" };
  const thought = reasoning_content ?? reasoning;
  if (thought) message.reasoning_content = thought;
  if (tool_calls?.length) message.tool_calls = tool_calls.map(readToolCall);
  const { usage } = parsed.data;
  return {
    message,
    finishReason,
    ...readUsage(usage),
  };
}

/**
 * What is missing becomes empty, and what is not text its JSON, so that nothing of the call is
 * lost.
 */
function readToolCall(value: unknown, index: number): ToolCall {
  const call = asRecord(value);
  const called = asRecord(call.function);
  const given = typeof call.function === "object" ? called.arguments : value;
  return {
    id: typeof call.id === "string" && call.id !== "" ? call.id : `call_${index}`,
    type: "function",
    function: { name: text(called.name), arguments: text(given) },
  };
}

function text(value: unknown): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : JSON.stringify(value);
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function bad(shown: string, what: string): ServiceError {
  return new ServiceError("engine_bad_reply", `${shown}: not a chat completion: ${what}`);
}

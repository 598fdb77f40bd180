import type { Message } from "../inference/engine.ts";
import type { TokenSegment, Trajectory } from "./record.ts";

/** A message as the clients of ProRL Agent know it. */
export type ProrlMessage = {
  role: Message["role"];
  content: string;
  tool_calls?: { name: string; arguments: string }[];
  tool_call_id?: string;
  /** Null where the engine's ids are absent. */
  token_ids: number[] | null;
  /** The whole prompt of the call; null for what no model wrote. */
  input_ids: number[] | null;
  logprobs: number[] | null;
};

export type ProrlView = {
  messages: ProrlMessage[];
  /**
   * Whether the `token_ids` of all messages before an assistant's are its `input_ids`. A history that was
   * rewritten can't be shown so: each call's own ids are right then, and their concatenation is not.
   */
  linear: boolean;
};

/**
 * The messages of a trajectory with the ids of each, and with every call's whole prompt: quadratic in the
 * turns, so made for those who ask for it. It ends with what the model wrote last.
 *
 * The ids between two calls are the messages' between them, with the template's text and the next
 * generation prompt. How many are of which one no engine says, and trainers don't ask: each gets one, and the
 * last the rest.
 */
export function prorlView(trajectory: Trajectory, { inputIds = true } = {}): ProrlView {
  const { segments, turns } = trajectory;
  const last = turns.at(-1)?.message ?? -1;
  const messages = trajectory.messages.slice(0, last + 1).map(plain);
  if (trajectory.token_ids === "absent") return { messages, linear: false };
  const calls = callsOf(segments);
  let from = 0;
  for (const [turn, { message }] of turns.entries()) {
    const call = calls.get(turn);
    const said = messages[message];
    if (!said) continue;
    share(messages.slice(from, message), call?.before ?? []);
    said.token_ids = call?.sampled ?? [];
    said.logprobs = call?.logprobs ?? null;
    if (inputIds && call) said.input_ids = call.input();
    from = message + 1;
  }
  return { messages, linear: segments.length <= 1 };
}

type Call = {
  /** What the engine saw between the call before and this one. */
  before: number[];
  sampled: number[];
  logprobs: number[] | null;
  input(): number[];
};

function callsOf(segments: readonly TokenSegment[]): Map<number, Call> {
  const calls = new Map<number, Call>();
  for (const { ids, spans, logprobs, fork } of segments) {
    let seen = fork?.common ?? 0;
    let at = 0;
    for (const { kind, start, end, turn } of spans) {
      if (kind !== "sampled" || turn === undefined) continue;
      const length = end - start;
      calls.set(turn, {
        before: ids.slice(seen, start),
        sampled: ids.slice(start, end),
        logprobs: logprobs?.slice(at, at + length) ?? null,
        input: () => ids.slice(0, start),
      });
      at += length;
      seen = end;
    }
  }
  return calls;
}

function share(messages: ProrlMessage[], ids: number[]): void {
  const alone = messages.length - 1;
  for (const [index, message] of messages.entries()) {
    message.token_ids = index < alone ? ids.slice(index, index + 1) : ids.slice(Math.max(0, alone));
  }
}

function plain(message: Message): ProrlMessage {
  const { role, content } = message;
  const none = { token_ids: null, input_ids: null, logprobs: null };
  if (message.role === "tool")
    return { role, content, tool_call_id: message.tool_call_id, ...none };
  const calls = message.role === "assistant" ? (message.tool_calls ?? []) : [];
  if (calls.length === 0) return { role, content, ...none };
  return { role, content, tool_calls: calls.map((call) => ({ ...call.function })), ...none };
}

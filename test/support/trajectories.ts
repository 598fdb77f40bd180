import type { Message, ToolSchema } from "../../src/inference/engine.ts";
import type { TokenSegment, Trajectory, Turn } from "../../src/trajectory/record.ts";

const TOOL: ToolSchema = {
  type: "function",
  function: { name: "think", description: "Think.", parameters: { type: "object", nested: [1] } },
};

const call = (n: number) => ({
  id: `call0000${n}`,
  type: "function" as const,
  function: { name: "think", arguments: `{"n": ${n}` },
});

const MESSAGES: Message[] = [
  { role: "system", content: "Be brief." },
  { role: "user", content: "¿ä𝄞?" },
  { role: "assistant", content: "", reasoning_content: "hm", tool_calls: [call(0), call(1)] },
  { role: "tool", content: "a", tool_call_id: "call00000" },
  { role: "tool", content: "b", tool_call_id: "call00001" },
  { role: "assistant", content: "4" },
  { role: "user", content: "never seen by a model" },
];

const TURN: Turn = {
  message: 2,
  backend_id: "b1",
  finish_reason: "tool_calls",
  prompt_tokens: 4,
  completion_tokens: 3,
  started_ms: 1.5,
  engine_ms: 20.25,
  queue_ms: null,
  waited_ms: 2,
  lost_tokens: 7,
  first_token_ms: 3,
  cached_tokens: 0,
  weight_version: "7",
  weight_spans: [
    { version: "6", start: 0, end: 1 },
    { version: "7", start: 1, end: 3 },
  ],
  logprobs_mode: "processed",
  tools: [
    { name: "think", status: "malformed", message: 3, duration_ms: 0.125 },
    { name: "think", status: "ok", message: 4, duration_ms: 2 },
  ],
};

const SEGMENT: TokenSegment = {
  ids: [0, 65_535, 65_536, 151_645, 11, 12, 13, 21, 22, 23, 24, 31, 32],
  spans: [
    { kind: "prompt", start: 0, end: 4, mask: 0 },
    { kind: "sampled", start: 4, end: 7, mask: 1, turn: 0 },
    { kind: "observation", start: 7, end: 11, mask: 0 },
    { kind: "sampled", start: 11, end: 13, mask: 1, turn: 1, dropped: 99 },
  ],
  logprobs: [-0.5, 0, -1.25, -2, -0.0625],
  fork: null,
};

/** Two turns with all that a trajectory can hold. */
export function exampleTrajectory(): Trajectory {
  return structuredClone({
    version: 1,
    job_id: "j",
    attempt: 2,
    token_ids: "exact",
    segments: [SEGMENT],
    tools: [TOOL],
    messages: MESSAGES,
    turns: [TURN, { ...TURN, message: 5, finish_reason: "stop", weight_spans: [], tools: [] }],
    stop_reason: null,
  });
}

import { framedJson } from "./framed-json.ts";

/** Nemotron Nano 2: `<TOOLCALL>[{…}, {…}]</TOOLCALL>`. */
export const nemotron = framedJson({ open: "<TOOLCALL>", close: "</TOOLCALL>" });

/** Apriel, Hunyuan, Jamba and MiniMax M1: a list or several objects in `<tool_calls>`. */
export const toolCalls = framedJson({ open: "<tool_calls>", close: "</tool_calls>" });

/**
 * Command R7B and later: `<|START_ACTION|>[{"tool_name": …, "parameters": {…}}]<|END_ACTION|>`. Command R+ and Aya write
 * the list into a fence.
 */
export const cohere = framedJson(
  { open: "<|START_ACTION|>", close: "<|END_ACTION|>" },
  { open: "Action:\n```json", close: "```" },
  { open: "Action: ```json", close: "```" },
);

/** Apertus: `<|tools_prefix|>[{"f": {…}}]<|tools_suffix|>`. */
export const apertus = framedJson({ open: "<|tools_prefix|>", close: "<|tools_suffix|>" });

/** Granite 3 and Phi 4 mini: `<|tool_call|>[…]`, with an end or none. */
export const granite = framedJson(
  { open: "<|tool_call|>", close: null },
  { open: "<tool_call>", close: null },
  { open: "functools[", close: null },
);

/** InternLM 2: `<|action_start|><|plugin|>{…}<|action_end|>`. */
export const internlm = framedJson({ open: "<|action_start|><|plugin|>", close: "<|action_end|>" });

/** GigaChat 3: `<|function_call|>{…}`, and before that a message of its own. */
export const gigachat = framedJson(
  { open: "<|function_call|>", close: null },
  { open: "function call<|role_sep|>", close: null },
);

/** Granite 20B: `<function_call> {…}`. */
export const functionCall = framedJson({ open: "<function_call>", close: null });

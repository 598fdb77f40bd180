import { framedJson } from "./framed-json.ts";

/** Hermes, Qwen2.5 and Qwen3: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`. */
export const hermes = framedJson({ open: "<tool_call>", close: "</tool_call>" });

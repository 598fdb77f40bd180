import { isObject } from "../lib/is-object.ts";
import { said, toolNamesProblem } from "./kind-check.ts";

/** What a function of a user's kind has to return. */
export const WANTED = {
  parse: "return the instance",
  sandboxes:
    'return {agent: boolean, evaluation: "none", "fresh" or "agent", image: string or null}',
  outcome: "return {stop_reason: string, final_message: string or null, turns: number}",
  verdict: "return {reward: number from 0 to 1, rule: string, reason: string}",
  agent:
    "call context.agent({prompt: {texts: {system, user}, fields}, tools}) or with prompt: {messages}",
} as const;

const STOP_REASONS = [
  ...["finish", "answer", "max_turns", "loop", "context", "length", "token_budget", "done"],
];

/** What is wrong with a value that a function returned; null where nothing is. */
export type ReturnCheck = (value: unknown) => string | null;

export const instanceProblem: ReturnCheck = (value) => {
  if (isThenable(value)) return "a promise, and it is asked for the instance at once";
  return value === undefined || value === null ? said(value) : null;
};

export const planProblem: ReturnCheck = (value) => {
  if (!isObject(value) || isThenable(value)) return said(value);
  const { agent, evaluation, image } = value;
  if (typeof agent !== "boolean") return `agent: ${said(agent)}`;
  if (!["none", "fresh", "agent"].includes(evaluation as string)) {
    return `evaluation: ${said(evaluation)}`;
  }
  if (evaluation === "agent" && !agent) return 'evaluation: "agent" without an agent\'s sandbox';
  return image === null || (typeof image === "string" && image !== "")
    ? null
    : `image: ${said(image)}`;
};

export const outcomeProblem: ReturnCheck = (value) => {
  if (!isObject(value)) return said(value);
  const { stop_reason, final_message, turns, patch, files } = value;
  if (!STOP_REASONS.includes(stop_reason as string)) {
    return `stop_reason: ${said(stop_reason)} (one of ${STOP_REASONS.join(", ")})`;
  }
  if (final_message !== null && typeof final_message !== "string") {
    return `final_message: ${said(final_message)}`;
  }
  if (!Number.isSafeInteger(turns) || (turns as number) < 0) return `turns: ${said(turns)}`;
  if (patch !== undefined && typeof patch !== "string") return `patch: ${said(patch)}`;
  if (files !== undefined && !(Array.isArray(files) && files.every(isFile))) {
    return "files: they are {path: string, base64: string}";
  }
  return jsonProblem(value);
};

export const verdictProblem: ReturnCheck = (value) => {
  if (!isObject(value)) return said(value);
  const { reward, rule, reason, details } = value;
  if (typeof reward !== "number" || !(reward >= 0 && reward <= 1)) {
    return `reward: ${said(reward)}`;
  }
  if (typeof rule !== "string" || rule === "") return `rule: ${said(rule)}`;
  if (typeof reason !== "string") return `reason: ${said(reason)}`;
  if (details !== undefined && (!isObject(details) || Array.isArray(details))) {
    return `details: ${said(details)}`;
  }
  return jsonProblem(value);
};

/** What a kind asks of `context.agent`. */
export const agentTaskProblem: ReturnCheck = (value) => {
  if (!isObject(value)) return said(value);
  const tools = toolNamesProblem(value.tools);
  if (tools !== null) return `tools: ${tools}`;
  const { prompt } = value;
  if (!isObject(prompt)) return `prompt: ${said(prompt)}`;
  if ("messages" in prompt) return messagesProblem(prompt.messages);
  const { texts, fields } = prompt;
  if (!isObject(texts) || typeof texts.user !== "string") return `prompt.texts: ${said(texts)}`;
  if (texts.system !== null && typeof texts.system !== "string") {
    return `prompt.texts.system: ${said(texts.system)}`;
  }
  if (!isObject(fields)) return `prompt.fields: ${said(fields)}`;
  const [name, field] = Object.entries(fields).find(([, one]) => typeof one !== "string") ?? [];
  return name === undefined ? null : `prompt.fields.${name}: ${said(field)}`;
};

/** What is wrong with the messages that a conversation begins with. */
export const messagesProblem: ReturnCheck = (messages) => {
  if (!Array.isArray(messages) || messages.length === 0) return `messages: ${said(messages)}`;
  for (const [index, message] of messages.entries()) {
    if (!isObject(message)) return `messages[${index}]: ${said(message)}`;
    const { role, content } = message;
    if (!["system", "user", "assistant", "tool"].includes(role as string)) {
      return `messages[${index}].role: ${said(role)}`;
    }
    if (typeof content !== "string") return `messages[${index}].content: ${said(content)}`;
  }
  return null;
};

function isFile(file: unknown): boolean {
  return isObject(file) && typeof file.path === "string" && typeof file.base64 === "string";
}

/** What is stored is JSON: no cycle, no bigint. */
function jsonProblem(value: unknown): string | null {
  try {
    JSON.stringify(value);
    return null;
  } catch (error) {
    return `what can't be written as JSON (${(error as Error).message.split("\n")[0]})`;
  }
}

function isThenable(value: unknown): boolean {
  return isObject(value) && typeof value.then === "function";
}

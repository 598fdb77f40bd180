import { ServiceError } from "../../errors.ts";
import type { AssistantMessage, Message, ToolCall, ToolSchema } from "../engine.ts";
import type { Template } from "./chat-template.ts";
import { type Rendering, render, SENTINEL, spliceAfter } from "./splice.ts";
import type { MessageForm } from "./template-message.ts";

/** What a template does, found by asking it; for one set of tools and variables. */
export type TemplateShape = {
  form: MessageForm;
  /** The token behind an assistant's text in a history; null where the next turn's opener ends it (GLM). */
  endOfTurn: string | null;
  /** A conversation with a tool call, as it is shown; null where calls are not shown at all. */
  shownCall: string | null;
  /** Why earlier turns can't be kept as they were sampled, with `history: "keep"`; null where they can. */
  notKept: string | null;
};

export type ProbeOptions = {
  tools: ToolSchema[];
  variables: Record<string, unknown>;
  now: Date;
  /** Strings that are always one token. */
  addedTokens: readonly string[];
};

const PROBE_CALL = "probe_call";
const REASONING = "zqREASONINGqz";
const SYSTEM: Message = { role: "system", content: "s" };
const USER: Message = { role: "user", content: "u" };
const CONTEXTS: Message[][] = [[SYSTEM, USER], [USER], [SYSTEM], []];
const FORMS: MessageForm[] = (["", null] as const).flatMap((emptyContent) => {
  const rest = { emptyContent, reasoning: "reasoning_content", lastEnd: null } as const;
  const calls = { calls: "together" } as const;
  return [
    { arguments: "object", ...calls, ...rest },
    { arguments: "text", ...calls, ...rest },
  ];
});

/** @throws ServiceError `template_refused` when it takes no conversation at all. */
export function probeTemplate(template: Template, options: ProbeOptions): TemplateShape {
  const { tools, variables, now, addedTokens } = options;
  const base = { template, tools, variables, now };
  const plain: Rendering = { ...base, form: FORMS[0] as MessageForm };
  const context = firstContext(plain);
  const shown = FORMS.map((form) => ({ form, text: showCall({ ...base, form }, context) }));
  const found = shown.find(({ text }) => text !== null);
  const rendering: Rendering = { ...base, form: found?.form ?? plain.form };
  if (!takesSeveral(rendering, context)) {
    rendering.form = { ...rendering.form, calls: "one by one" };
  }
  const { form } = rendering;
  const reasoning = reasoningField(rendering, context);
  rendering.form = { ...form, reasoning, lastEnd: lastEnd(rendering, context, addedTokens) };
  return {
    form: rendering.form,
    endOfTurn: endOfTurn(rendering, context, addedTokens),
    shownCall: found?.text ?? null,
    notKept: notKept(rendering, context, found !== undefined),
  };
}

function firstContext(rendering: Rendering): Message[] {
  const said = assistant("text");
  let refusal: unknown;
  for (const context of CONTEXTS) {
    try {
      if (render(rendering, [...context, said], false).includes(SENTINEL)) return context;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      refusal ??= error;
    }
  }
  throw refusal ?? new ServiceError("template_refused", "the chat template shows no messages");
}

function showCall(rendering: Rendering, context: Message[]): string | null {
  const text = attempt(() => render(rendering, [...context, assistant("call"), result(1)], true));
  // Kimi's shows the name in the id only, so the arguments must be looked for.
  return text?.includes(SENTINEL) && !text.includes("[object") ? text : null;
}

/** Llama 3's refuses a turn of several calls, which a policy may sample nevertheless. */
function takesSeveral(rendering: Rendering, context: Message[]): boolean {
  const calls = [1, 2].flatMap((n) => assistant("call", n).tool_calls ?? []);
  const said: AssistantMessage = { role: "assistant", content: "", tool_calls: calls };
  const asked = [...context, said, result(1), result(2)];
  return attempt(() => render(rendering, asked, true)) !== null;
}

function reasoningField(rendering: Rendering, context: Message[]): MessageForm["reasoning"] {
  const thought = [...context, assistant("call", 1, REASONING), result(1)];
  const shows = (reasoning: MessageForm["reasoning"]) => {
    const form = { ...rendering.form, reasoning };
    return attempt(() => render({ ...rendering, form }, thought, true))?.includes(REASONING);
  };
  return !shows("reasoning_content") && shows("thinking") ? "thinking" : "reasoning_content";
}

function lastEnd(rendering: Rendering, context: Message[], addedTokens: readonly string[]) {
  const said = [...context, assistant("text")];
  const sampled = endOfTurn(rendering, context, addedTokens);
  const open = attempt(() => render(rendering, [...said, USER], true));
  if (sampled === null || open === null) return null;
  const kept = firstToken(behindSentinel(open), addedTokens);
  const closed = behindSentinel(render(rendering, said, false));
  const isReplaced = closed === sampled && behindSentinel(open).startsWith(kept ?? sampled);
  return isReplaced && kept !== null && kept !== sampled ? { sampled, kept } : null;
}

/** The first added token behind what an assistant said. */
function endOfTurn(
  rendering: Rendering,
  context: Message[],
  addedTokens: readonly string[],
): string | null {
  const text = render(rendering, [...context, assistant("text")], false);
  return firstToken(behindSentinel(text), addedTokens);
}

function behindSentinel(text: string): string {
  return text.slice(text.lastIndexOf(SENTINEL) + SENTINEL.length);
}

function firstToken(tail: string, addedTokens: readonly string[]): string | null {
  const found = addedTokens
    .map((token) => ({ token, at: tail.indexOf(token) }))
    .filter(({ at }) => at >= 0)
    .toSorted((a, b) => a.at - b.at || b.token.length - a.token.length);
  return found[0]?.token ?? null;
}

/** A turn that is kept is told from what follows by where the template shows its end. */
function notKept(rendering: Rendering, context: Message[], showsCalls: boolean): string | null {
  const turns: [string, AssistantMessage, Message[]][] = [
    ["a user message", { role: "assistant", content: "t" }, [USER]],
  ];
  if (showsCalls) turns.push(["a tool result", assistant("call"), [result(1)]]);
  for (const [what, said, added] of turns) {
    const splice = attempt(() => spliceAfter(rendering, context, said, added));
    if (splice === null) return `the template does not show a turn before ${what}`;
  }
  return null;
}

/** Ids of nine letters and digits, as Mistral's templates ask for. */
function callId(n: number): string {
  return `probe${String(n).padStart(4, "0")}`;
}

function assistant(kind: "text" | "call", n = 1, reasoning?: string): AssistantMessage {
  const thought = reasoning === undefined ? {} : { reasoning_content: reasoning };
  if (kind === "text") return { role: "assistant", content: SENTINEL, ...thought };
  const call: ToolCall = {
    id: callId(n),
    type: "function",
    function: { name: PROBE_CALL, arguments: JSON.stringify({ value: SENTINEL }) },
  };
  return { role: "assistant", content: "", tool_calls: [call], ...thought };
}

function result(n: number): Message {
  return { role: "tool", content: "r", tool_call_id: callId(n) };
}

function attempt<T>(work: () => T): T | null {
  try {
    return work();
  } catch (error) {
    if (isRefusal(error)) return null;
    throw error;
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "template_refused";
}

import { ServiceError } from "../../errors.ts";
import type { AssistantMessage, Message, ToolCall, ToolSchema } from "../engine.ts";
import type { Template } from "./chat-template.ts";
import {
  contextOf,
  type Rendering,
  render,
  SENTINEL,
  type SpliceContext,
  spliceAfter,
} from "./splice.ts";
import type { MessageForm } from "./template-message.ts";

export type NewRole = "user" | "tool";

/** What a template does, found by asking it; for one set of tools and variables. */
export type TemplateShape = {
  form: MessageForm;
  /** The token behind an assistant's text in a history; null where the next turn's opener ends it (GLM). */
  endOfTurn: string | null;
  /** How much of the history decides how new messages are written. */
  context: Record<NewRole, SpliceContext>;
  /** Roles whose new messages may change what the template shows of earlier turns. */
  rewriting: Set<NewRole>;
  /** Roles after whose messages the template no longer shows earlier reasoning. */
  thinkingCut: Set<NewRole>;
  /** A conversation with a tool call, as it is shown; null where calls are not shown at all. */
  shownCall: string | null;
};

export type ProbeOptions = {
  tools: ToolSchema[];
  variables: Record<string, unknown>;
  now: Date;
  /** Strings that are always one token. */
  addedTokens: readonly string[];
};

const CONTEXT_KINDS: SpliceContext[] = ["head", "first_round"];
const PROBE_CALL = "probe_call";
const REASONING = "zqREASONINGqz";
const SYSTEM: Message = { role: "system", content: "s" };
const USER: Message = { role: "user", content: "u" };
const CONTEXTS: Message[][] = [[SYSTEM, USER], [USER], [SYSTEM], []];
const FORMS: MessageForm[] = (["", null] as const).flatMap((emptyContent) => {
  const rest = { emptyContent, reasoning: "reasoning_content", lastEnd: null } as const;
  return [
    { arguments: "object", malformed: "text", ...rest },
    { arguments: "text", malformed: "text", ...rest },
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
  if (!takesMalformed(rendering, context)) {
    rendering.form = { ...rendering.form, malformed: "wrapped" };
  }
  const { form } = rendering;
  const reasoning = reasoningField(rendering, context);
  rendering.form = { ...form, reasoning, lastEnd: lastEnd(rendering, context, addedTokens) };
  return {
    form: rendering.form,
    endOfTurn: endOfTurn(rendering, context, addedTokens),
    shownCall: found?.text ?? null,
    ...probeHistory(rendering, context),
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

function takesMalformed(rendering: Rendering, context: Message[]): boolean {
  const message = assistant("call");
  for (const call of message.tool_calls ?? []) call.function.arguments = "{";
  return attempt(() => render(rendering, [...context, message, result(1)], true)) !== null;
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

function probeHistory(rendering: Rendering, context: Message[]) {
  const found: Record<NewRole, SpliceContext> = { user: "whole", tool: "whole" };
  const rewriting = new Set<NewRole>();
  const thinkingCut = new Set<NewRole>();
  const first = [...context.filter(({ role }) => role === "system"), USER];
  const round = (n: number) => [assistant("call", n, REASONING), result(n)];
  const cases: [NewRole, AssistantMessage, Message[]][] = [
    ["tool", assistant("call", 3, REASONING), [result(3)]],
    ["user", assistant("text", 3, REASONING), [USER]],
  ];
  for (const [role, last, added] of cases) {
    const long = [...first, ...round(1), ...round(2)];
    found[role] = contextNeeded(rendering, [long, [...long, ...round(4)]], last, added);
    const closed = attempt(() => render(rendering, [...long, last], false));
    const open = attempt(() => render(rendering, [...long, last, ...added], true));
    if (closed === null || open === null) continue;
    if (!open.startsWith(closed)) rewriting.add(role);
    if (cutsThinking(rendering, closed, open, first)) thinkingCut.add(role);
    // Some move the system message or the tools to the last user message.
    const prompt = attempt(() => render(rendering, first, true));
    if (role === "user" && prompt !== null && !open.startsWith(prompt)) rewriting.add(role);
  }
  return { context: found, rewriting, thinkingCut };
}

/** The least after which new messages are written as they are after the whole history. */
function contextNeeded(
  rendering: Rendering,
  histories: Message[][],
  last: AssistantMessage,
  added: Message[],
): SpliceContext {
  const agrees = (context: SpliceContext) =>
    histories.every((history) => {
      const far = attempt(() => spliceAfter(rendering, history, last, added));
      const near = attempt(() => {
        return spliceAfter(rendering, contextOf(history, context), last, added);
      });
      return near !== null && near.next === far?.next && near.close === far.close;
    });
  return CONTEXT_KINDS.find(agrees) ?? "whole";
}

/** Reasoning that a template never shows is not cut: it writes it nowhere. */
function cutsThinking(rendering: Rendering, closed: string, open: string, first: Message[]) {
  const alone = attempt(() =>
    render(rendering, [...first, assistant("call", 1, REASONING), result(1)], true),
  );
  const shown = Math.max(count(closed), alone === null ? 0 : count(alone));
  return shown > 0 && count(open) < 3;
}

function count(text: string): number {
  return text.split(REASONING).length - 1;
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

import { beforeAll, describe, expect, test } from "bun:test";
import type { Message as TheirMessage, Conversation as Theirs } from "openai-harmony";
import type { AssistantMessage, Message, ToolSchema } from "../../../../src/inference/engine.ts";
import { Conversation } from "../../../../src/inference/tokens/conversation.ts";
import { MarkedText } from "../../../../src/inference/tokens/dialects/marked-text.ts";
import { parseReply } from "../../../../src/inference/tokens/dialects/reply.ts";
import { verifyCase } from "../../../../src/inference/tokens/verify.ts";
import { VERIFY_CASES, type VerifyCase } from "../../../../src/inference/tokens/verify-cases.ts";
import { BASH } from "../models.ts";
import { randomConversation } from "../random-conversation.ts";
import { randomOf } from "../simulated-engine.ts";
import { type GptOss, gptOss } from "./gpt-oss.ts";

let harmony: GptOss["harmony"];
let model: GptOss["model"];
beforeAll(async () => {
  ({ harmony, model } = await gptOss());
}, 60_000);

const NOW = new Date("2026-01-02T12:00:00");
const RETURN = 200_002;
const END = 200_007;

const said = (text: string, more: Partial<TheirMessage>): TheirMessage => {
  return { role: "assistant", content: [{ type: "text", text }], ...more };
};

/** Our messages as the library has them: an assistant's are one for each thing that it said. */
function theirsOf(message: Message, calledBefore: string): TheirMessage[] {
  if (message.role === "user") return [said(message.content, { role: "user" })];
  if (message.role === "tool") {
    const rest = { recipient: "assistant", channel: "commentary" };
    return [said(message.content, { role: "tool", name: `functions.${calledBefore}`, ...rest })];
  }
  if (message.role !== "assistant") return [];
  const { reasoning_content = "", content, tool_calls = [] } = message;
  const thought = tool_calls.length > 0 ? [reasoning_content, content] : [reasoning_content];
  const text = thought.filter((part) => part !== "").join("\n\n");
  const calls = tool_calls.map((call) => {
    const to = { recipient: `functions.${call.function.name}`, channel: "commentary" };
    return said(call.function.arguments, { ...to, content_type: "<|constrain|>json" });
  });
  const answer = tool_calls.length > 0 ? [] : [said(content, { channel: "final" })];
  return [...(text === "" ? [] : [said(text, { channel: "analysis" })]), ...calls, ...answer];
}

function beginning(messages: readonly Message[], tools: ToolSchema[]): TheirMessage[] {
  const system: TheirMessage = {
    role: "system",
    content: [
      {
        type: "system_content",
        model_identity: "You are ChatGPT, a large language model trained by OpenAI.",
        ...{ reasoning_effort: "Medium", knowledge_cutoff: "2024-06", tools: null },
        conversation_start_date: "2026-01-02",
        channel_config: {
          valid_channels: ["analysis", "commentary", "final"],
          channel_required: true,
        },
      },
    ],
  };
  const [first] = messages;
  const instructions = first?.role === "system" ? first.content : null;
  if (instructions === null && tools.length === 0) return [system];
  const described = tools.map(({ function: { name, description = "", parameters } }) => {
    return { name, description, parameters: parameters as never };
  });
  const functions = { name: "functions", description: null, tools: described };
  const content = {
    ...{ type: "developer_content" as const, instructions },
    tools: tools.length > 0 ? { functions } : null,
  };
  return [system, { role: "developer", content: [content] }];
}

function conversationOf(messages: readonly Message[], tools: ToolSchema[]): Theirs {
  let called = "";
  const rest = messages.flatMap((message) => {
    const theirs = theirsOf(message, called);
    if (message.role === "assistant") called = message.tool_calls?.at(-1)?.function.name ?? called;
    return theirs;
  });
  return { messages: [...beginning(messages, tools), ...rest] };
}

/** The prompt that the library makes of them. */
function promptOf(messages: readonly Message[], tools: ToolSchema[]): number[] {
  const given = conversationOf(messages, tools);
  return [
    ...harmony.renderConversationForCompletion(given, "assistant", { auto_drop_analysis: true }),
  ];
}

/** What gpt-oss samples to say that, by the library: all behind `<|start|>assistant`. */
function sampledOf(message: AssistantMessage): number[] {
  const messages = theirsOf(message, "");
  const ids = [...harmony.renderConversation({ messages }, { auto_drop_analysis: false })];
  return [...ids.slice(2, -1), ...(ids.at(-1) === END ? [RETURN] : ids.slice(-1))];
}

/**
 * The same by the rule of gpt-oss's template: what was thought before the last answer is not shown. The library drops
 * what was thought before the first, and shows what was thought between that and the last.
 */
function answeredPromptOf(messages: readonly Message[], tools: ToolSchema[]): number[] {
  const answer = messages.findLastIndex((message) => {
    return message.role === "assistant" && message.tool_calls === undefined;
  });
  const shown = messages.map((message, index) => {
    if (index > answer || message.role !== "assistant") return message;
    const { reasoning_content: _, ...rest } = message;
    return rest;
  });
  const given = conversationOf(shown, tools);
  return [
    ...harmony.renderConversationForCompletion(given, "assistant", { auto_drop_analysis: false }),
  ];
}

/** The prompts of all calls, as our conversation grows and as the library renders each anew. */
function prompts({ messages, tools, truncated }: VerifyCase, rendered = promptOf) {
  const first = messages.findIndex(({ role }) => role === "assistant");
  const conversation = new Conversation(model, messages.slice(0, first), { tools, now: NOW });
  const ours: string[] = [];
  const theirs: string[] = [];
  const exact: boolean[] = [];
  const call = (before: Message[]) => {
    const ids = [...conversation.prompt()];
    const expected = rendered(before, tools);
    ours.push(model.tokenizer.decode(ids));
    theirs.push(harmony.decodeUtf8(Uint32Array.from(expected)));
    exact.push(Bun.deepEquals(ids, expected));
  };
  for (const [index, message] of messages.entries()) {
    if (index < first) continue;
    if (message.role !== "assistant") {
      conversation.add(message);
      continue;
    }
    call(messages.slice(0, index));
    const ids = sampledOf(message);
    conversation.sampled(truncated === index ? ids.slice(0, -1) : ids, message);
  }
  if (messages.at(-1)?.role !== "assistant") call(messages);
  return { ours, theirs, exact };
}

describe("against openai-harmony", () => {
  test("text has the same ids, whatever is in it", () => {
    const pieces =
      "a The don't I'LL naïve 日本語 🤖👩‍👩‍👧 e\u0301 \u200b 12345 3.14 (x) // \\n ## def  \t \n \r\n \n\n ;; ﬀ Ж ي \u00a0".split(
        " ",
      );
    const draw = randomOf(7);
    const random = (below: number) => Math.floor(draw() * below);
    for (let text = 0; text < 300; text++) {
      const count = 1 + random(12);
      const words = Array.from({ length: count }, () => pieces[random(pieces.length)] || " ");
      const whole = words.join(random(2) === 0 ? " " : "");
      expect([whole, model.tokenizer.encode(whole)]).toEqual([
        whole,
        [...harmony.encode(whole, new Set())],
      ]);
      expect(model.tokenizer.decode(model.tokenizer.encode(whole))).toBe(whole);
    }
  });

  test("the folder's dialect is Harmony, and turns end as the library says", () => {
    expect(model.dialect).toBe("harmony");
    const actions = [...harmony.stopTokensForAssistantActions()];
    expect([...model.stopIds].toSorted()).toEqual([199_999, ...actions].toSorted());
  });

  test.each(VERIFY_CASES)("each prompt is the library's: $name", (given) => {
    const { ours, theirs, exact } = prompts(given);
    expect(ours).toEqual(theirs);
    expect(exact.every(Boolean)).toBe(true);
  });

  test("each prompt of random conversations is the library's", () => {
    for (let seed = 1; seed <= 30; seed++) {
      const messages = randomConversation(seed);
      const given = { name: `${seed}`, tools: [BASH], variables: {}, messages };
      const { ours, theirs, exact } = prompts(given, answeredPromptOf);
      expect(ours).toEqual(theirs);
      expect(exact.every(Boolean)).toBe(true);
    }
  });

  test("verify-template finds nothing that is not explained", () => {
    const found = VERIFY_CASES.map((given) => verifyCase(model, given));
    const verdicts = found.filter(({ verdict }) => verdict !== "equal");
    expect(verdicts.map(({ case: name, verdict }) => [name, verdict])).toEqual([
      ["thinking on: two questions", "forked"],
    ]);
  });

  /** The space in JSON is not kept, nor that around a text. */
  const plainly = (text: string) => {
    try {
      return JSON.stringify(JSON.parse(text));
    } catch {
      return text.trim();
    }
  };

  /** What the library finds in a completion, in our words. */
  const foundByLibrary = (ids: number[]) => {
    const messages = JSON.parse(
      harmony.parseMessagesFromCompletionTokens(Uint32Array.from(ids), "assistant"),
    ) as { content: string; channel?: string; recipient?: string }[];
    const of = (isWanted: (message: (typeof messages)[number]) => boolean) =>
      messages
        .filter((message) => message.recipient === undefined && isWanted(message))
        .map(({ content }) => content.trim())
        .join("\n\n");
    const calls = messages.flatMap(({ recipient, content }) => {
      return recipient === undefined
        ? []
        : [{ name: recipient.replace(/^functions\./, ""), arguments: plainly(content) }];
    });
    const reasoning = of(({ channel }) => channel === "analysis");
    return { reasoning, content: of(({ channel }) => channel !== "analysis"), calls };
  };

  const found = (ids: number[]) => {
    const source = MarkedText.ofIds(model.tokenizer, ids, model.stopIds);
    const reply = parseReply(source, { dialect: "harmony", tools: [], startsInReasoning: false });
    const calls = reply.calls.map((call) => {
      return { name: call.name, arguments: plainly(call.arguments) };
    });
    return { reasoning: reply.reasoning ?? "", content: reply.content, calls };
  };

  test.each([
    "<|channel|>final<|message|>Three.<|return|>",
    "<|channel|>final<|message|>Three, and the budget ends",
    "<|channel|>final<|message|><|return|>",
    "<|channel|>analysis<|message|>One.<|end|><|start|>assistant<|channel|>analysis<|message|>Two.\n<|end|><|start|>assistant<|channel|>final<|message|>日本 🤖<|return|>",
    "<|channel|>analysis<|message|>Only thought<|end|>",
    '<|channel|>commentary to=functions.execute_bash <|constrain|>json<|message|>{"command":"ls"}<|call|>',
    ' to=functions.execute_bash<|channel|>commentary json<|message|>{"command":"ls"}<|call|>',
    "<|channel|>analysis<|message|>Look.<|end|><|start|>assistant<|channel|>commentary<|message|>I'll look.<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
    "<|channel|>commentary to=functions.f<|message|>{}<|call|><|start|>assistant<|channel|>commentary to=functions.g<|message|>{}<|call|>",
    "<|channel|>commentary to=functions.a-b.c_d <|constrain|>json<|message|>{}<|call|>",
    "<|channel|>analysis to=python code<|message|>print(1)<|call|>",
    '<|channel|>analysis to=browser.search<|message|>{"query":"x"}<|call|>',
    '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"text": "to=functions.g <|"}<|call|>',
    "<|channel|>final<|message|>A quoted < |channel|> and to=functions.f<|return|>",
    "<|message|>Without a channel<|return|>",
  ])("a completion is read as the library reads it: %s", (text) => {
    const ids = [...harmony.encode(text, new Set(harmony.specialTokens()))];
    expect(found(ids)).toEqual(foundByLibrary(ids));
  });

  test("so are random ones, whose texts quote the markers", () => {
    const draw = randomOf(11);
    const pick = <T>(of: readonly T[]): T => of[Math.floor(draw() * of.length)] as T;
    const texts = [
      "x",
      "<|end|>",
      "<|channel|>final<|message|>",
      "to=functions.f",
      "日本\n",
      '{"a": 1}',
    ];
    for (let turn = 0; turn < 200; turn++) {
      const messages = Array.from({ length: 1 + Math.floor(draw() * 4) }, () => {
        const text = `${pick(texts)} ${pick(texts)} ${pick(texts)}`;
        const channel = pick(["analysis", "commentary", "final"]);
        const calls = channel === "commentary" && draw() < 0.5;
        return said(text, { channel, ...(calls ? { recipient: "functions.f" } : {}) });
      });
      const ids = [...harmony.renderConversation({ messages }, { auto_drop_analysis: false })];
      expect(found(ids.slice(2))).toEqual(foundByLibrary(ids.slice(2)));
    }
  });
});

describe("what the library refuses or gets wrong", () => {
  test.each([
    ["plain words", { reasoning: "", content: "plain words", calls: [] }],
    ["", { reasoning: "", content: "", calls: [] }],
    // The library takes the answer's form for its recipient.
    [
      '<|channel|>final <|constrain|>json<|message|>{"a":1}<|return|>',
      { reasoning: "", content: '{"a":1}', calls: [] },
    ],
    // And here it gives up.
    [
      "<|channel|>commentary json to=functions.f<|message|>{}<|call|>",
      { reasoning: "", content: "", calls: [{ name: "f", arguments: "{}" }] },
    ],
  ])("is read as it was meant: %s", (text, expected) => {
    const ids = model.tokenizer.encode(text);
    const source = MarkedText.ofIds(model.tokenizer, ids, model.stopIds);
    const options = { dialect: "harmony", tools: [], startsInReasoning: false } as const;
    const { reasoning, content, calls } = parseReply(source, options);
    const shown = calls.map(({ name, arguments: args }) => ({ name, arguments: args }));
    expect({ reasoning: reasoning ?? "", content, calls: shown }).toEqual(expected);
  });
});

import { describe, expect, test } from "bun:test";
import { prorlMessages } from "../../../src/compat/prorl/messages.ts";
import type { Message } from "../../../src/inference/engine.ts";

const call = (id: string) => ({
  id,
  type: "function" as const,
  function: { name: "execute_bash", arguments: '{"command":"ls"}' },
});

const CONVERSATION: Message[] = [
  { role: "user", content: "Look." },
  { role: "assistant", content: "", reasoning_content: "Hm.", tool_calls: [call("a")] },
  { role: "tool", content: "file", tool_call_id: "a" },
];

const shown = (messages: Message[], endThinking = false) =>
  prorlMessages({ messages, turns: [] }, { tokens: null, endThinking });

describe("a conversation in the shape of ProRL's clients", () => {
  test("ends with the model's last words, its reasoning and calls as text", () => {
    expect(shown(CONVERSATION)).toEqual({
      endProperly: true,
      messages: [
        { role: "user", content: "Look." },
        {
          role: "assistant",
          content: "<think>\nHm.\n</think>\n\n",
          tool_calls: [{ name: "execute_bash", arguments: '{"command":"ls"}' }],
          weight_version: null,
        },
      ],
    });
  });

  test("is empty where the model said nothing", () => {
    expect(shown(CONVERSATION.slice(0, 1)).messages).toEqual([]);
  });

  test("is cut at a thought without an end, where that is asked for", () => {
    const open: Message[] = [
      ...CONVERSATION.slice(0, 1),
      { role: "assistant", content: "<think>\nAnd", tool_calls: [call("a")] },
      ...CONVERSATION.slice(2),
      { role: "assistant", content: "Done." },
    ];
    const { messages, endProperly } = shown(open, true);
    expect(endProperly).toBe(false);
    expect(messages).toHaveLength(2);
    expect(messages[1]?.tool_calls).toBeUndefined();
    expect(messages[1]?.content).toStartWith("<think>\nAnd\n<tool_call>\n");
    expect(messages[1]?.content).toEndWith("</tool_call>\n</think>");
    expect(shown(open).messages).toHaveLength(4);
  });
});

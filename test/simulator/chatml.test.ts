import { expect, test } from "bun:test";
import { render } from "../../src/inference/tokens/splice.ts";
import { loadTokenModel } from "../../src/inference/tokens/token-model.ts";
import { VERIFY_CASES } from "../../src/inference/tokens/verify-cases.ts";
import { parseChat, renderChat, spokenText } from "../../src/simulator/chatml.ts";
import { messageSchema } from "../../src/simulator/conversation.ts";
import { writeModelFolder } from "../../src/simulator/model-folder.ts";
import { byteTokenizer } from "../../src/simulator/tokenizer.ts";
import { tempDir } from "../support/temp-dir.ts";

const tool = (content: string) => ({ role: "tool" as const, content, tool_call_id: "" });

test("messages are rendered as Qwen's template does, and read back", () => {
  const messages = [
    { role: "system" as const, content: "be brief" },
    { role: "user" as const, content: "two\nlines" },
    { role: "assistant" as const, content: "I look" },
    tool("one"),
    tool("two"),
  ];
  const text = renderChat(messages, []);
  expect(text).toEndWith(
    "<|im_start|>user\n<tool_response>\none\n</tool_response>\n" +
      "<tool_response>\ntwo\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
  );
  expect(parseChat(text)).toEqual({ messages, begun: "" });
});

test("a call is written in Hermes' dialect, with its arguments as they are", () => {
  const toolCalls = [{ name: "bash", arguments: '{"command":' }];
  expect(spokenText({ content: "so", toolCalls })).toBe(
    'so\n<tool_call>\n{"name": "bash", "arguments": {"command":}\n</tool_call>',
  );
});

test("a turn that was begun is known by what it says", () => {
  const text = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nhel";
  expect(parseChat(text)).toEqual({
    messages: [{ role: "user", content: "hi" }],
    begun: "hel",
  });
});

test.each(["", "words", "<|im_start|>user\nhi<|im_end|>", "<|im_start|>user\nhi"])(
  "%j asks for no turn of an assistant",
  (text) => {
    expect(parseChat(text)).toBeNull();
  },
);

test("text of any bytes goes through the tokenizer and back", () => {
  const text = "<|im_start|>tool é漢\u{1f600}\0<tool_call>{}</tool_call><|im_end|><|im_|>";
  const ids = byteTokenizer.encode(text);
  expect(byteTokenizer.decode(ids)).toBe(text);
  expect(ids.filter((id) => id >= 256)).toHaveLength(4);
  expect(Math.max(...ids)).toBeLessThan(byteTokenizer.vocabSize);
});

test("messages become the prompt that the model folder's template gives, token for token", async () => {
  using dir = tempDir();
  writeModelFolder(dir.path);
  const model = await loadTokenModel(dir.path);
  for (const { messages, tools, name } of VERIFY_CASES) {
    // A call in a chat is shown as it was sent.
    const form = { ...model.shape(tools, {}).form, arguments: "text" as const };
    const rendering = { template: model.template, form, tools, variables: {}, now: new Date(0) };
    const ids = model.tokenizer.encode(render(rendering, messages, true));
    const parsed = messages.map((message) => messageSchema.parse(message));
    expect([name, byteTokenizer.encode(renderChat(parsed, tools))]).toEqual([name, ids]);
  }
});

import { describe, expect, test } from "bun:test";
import { messagesOf } from "../../../src/compat/nemo-gym/messages.ts";
import { ServiceError } from "../../../src/errors.ts";

const refused = (input: unknown) => {
  try {
    messagesOf(input);
  } catch (error) {
    if (error instanceof ServiceError) return error.message;
    throw error;
  }
  return null;
};

test("a prompt of the Responses API is one of messages, with what was said and called before", () => {
  const call = { call_id: "c1", name: "look", arguments: '{"at": 1}' };
  expect(
    messagesOf([
      { role: "developer", content: "Be brief." },
      { role: "user", content: [{ type: "input_text", text: "Look" }, { text: " there." }] },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "I look." }] },
      { type: "function_call", ...call },
      { type: "function_call_output", call_id: "c1", output: { seen: 2 } },
      { type: "function_call", ...call, call_id: "c2" },
    ]),
  ).toEqual([
    { role: "system", content: "Be brief." },
    { role: "user", content: "Look there." },
    {
      role: "assistant",
      content: "I look.",
      tool_calls: [
        { id: "c1", type: "function", function: { name: "look", arguments: '{"at": 1}' } },
      ],
    },
    { role: "tool", content: '{"seen":2}', tool_call_id: "c1" },
    {
      role: "assistant",
      content: "",
      tool_calls: [
        { id: "c2", type: "function", function: { name: "look", arguments: '{"at": 1}' } },
      ],
    },
  ]);
  expect(messagesOf("Go.")).toEqual([{ role: "user", content: "Go." }]);
});

describe("refused by its place:", () => {
  test.each([
    [
      "an image",
      [{ role: "user", content: [{ type: "input_image", image_url: "x" }] }],
      "[0].content[0] is input_image, and models are shown text only",
    ],
    [
      "a reasoning item",
      [{ type: "reasoning", summary: [] }],
      "[0] is a reasoning, which is not supported: only messages, function_call and function_call_output are",
    ],
    [
      "another role",
      [{ role: "critic", content: "x" }],
      '[0].role is "critic", which is not supported',
    ],
    [
      "a call without a name",
      [{ type: "function_call", call_id: "c", arguments: "{}" }],
      "[0].name is missing",
    ],
    ["no list", 7, " is missing or no list of messages"],
  ] as [string, unknown, string][])("%s", (_what, input, message) => {
    expect(refused(input)).toBe(`responses_create_params.input${message}`);
  });
});

import { expect, test } from "bun:test";
import { ServiceError } from "../../src/errors.ts";
import { countTurns, messageSchema } from "../../src/simulator/conversation.ts";
import { nextTurn, parsePolicy, Unscripted } from "../../src/simulator/policy.ts";

const entry = (match: string, ...variants: object[][]) => JSON.stringify({ match, variants });

/** What a policy file says to a conversation. */
function ask(file: string, messages: object[], seed?: number) {
  const asked = {
    messages: messages.map((message) => messageSchema.parse(message)),
    seed: seed ?? null,
  };
  return nextTurn(parsePolicy(file, "p.jsonl"), asked, countTurns(asked.messages));
}

const user = (content: string) => ({ role: "user", content });
const assistant = { role: "assistant", content: "" };
const tool = (content: string) => ({ role: "tool", content, tool_call_id: "c" });

test("the first entry whose match is in the first user message answers", () => {
  const file = `${entry("two", [{ content: "2" }])}\n\n${entry("", [{ content: "any" }])}\n`;
  const system = { role: "system", content: "one two" };
  expect(ask(file, [system, user("what is two?")]).said.content).toBe("2");
  expect(ask(file, [system, user("one"), assistant].slice(0, 2)).said.content).toBe("any");
});

test("the seed chooses the variant, and the assistant messages so far the turn", () => {
  const file = entry("", [{ content: "a0" }, { content: "a1", delay_ms: 5 }], [{ content: "b0" }]);
  expect(ask(file, [user("x")]).said.content).toBe("a0");
  expect(ask(file, [user("x")], 3).said.content).toBe("b0");
  expect(ask(file, [user("x")], -1).said.content).toBe("b0");
  expect(ask(file, [user("x"), assistant, user("y")], 2)).toEqual({
    said: { content: "a1", toolCalls: [], finishReason: "stop" },
    delayMs: 5,
  });
});

test("strings hold what the last tool printed, or the first group of an expression in it", () => {
  const command = "echo {{observation:^total: (\\d{2})$}} > {{observation:b.d}}";
  const turn = {
    content: "saw {{observation}}",
    tool_calls: [
      { name: "bash", arguments: { command, deep: [{ text: "{{observation:(\\w+)}}" }], n: 1 } },
      { name: "bash", arguments: "{broken" },
    ],
  };
  const file = entry("", [turn, turn]);
  const { said } = ask(file, [user("x"), assistant, tool("old"), tool("bad\ntotal: 42\n")]);
  expect(said).toEqual({
    content: "saw bad\ntotal: 42",
    toolCalls: [
      {
        name: "bash",
        arguments: '{"command":"echo 42 > bad","deep":[{"text":"bad"}],"n":1}',
      },
      { name: "bash", arguments: "{broken" },
    ],
    finishReason: "tool_calls",
  });
});

test("a placeholder may stand in braces", () => {
  const file = entry("", [
    { content: "\\boxed{{{observation}}} \\boxed{{{observation:(\\d+)}}} {{other}}" },
  ]);
  expect(ask(file, [user("x"), tool("4")]).said.content).toBe("\\boxed{4} \\boxed{4} {{other}}");
});

test.each([
  [[user("three")], 'no scripted policy matches the first user message "three"; there are: "two"'],
  [
    [user("two"), assistant, assistant],
    'variant 0 of the scripted policy "two" ends after 2 turns, and turn 3 was asked for',
  ],
  [
    [user("two")],
    "the scripted policy can't read the observation: {{observation}} stands before the first tool message",
  ],
  [
    [user("two"), assistant, tool("none")],
    'the scripted policy can\'t read the observation: {{observation:\\d+}} finds nothing in "none"',
  ],
])("a conversation without an answer is told why (%#)", (messages, message) => {
  const file = entry("two", [{ content: "{{observation}}" }, { content: "{{observation:\\d+}}" }]);
  expect(() => ask(file, messages)).toThrow(new Unscripted(message));
});

test.each([
  ["{", "p.jsonl:2: line: not JSON: "],
  [entry("x"), "p.jsonl:2: variants: "],
  [entry("x", []), "p.jsonl:2: variants[0]: "],
  [entry("x", [{ contents: "a" }]), "p.jsonl:2: variants[0][0]: "],
  [entry("x", [{ content: 1 }]), "p.jsonl:2: variants[0][0].content: "],
  [
    entry("x", [{}, { tool_calls: [{ name: "" }] }]),
    "p.jsonl:2: variants[0][1].tool_calls[0].name: ",
  ],
  [entry("x", [{ content: "{{observation:(}}" }]), "p.jsonl:2: variants[0][0].content: "],
  [
    entry("x", [{ content: "{{observation:a" }]),
    "p.jsonl:2: variants[0][0].content: a placeholder {{observation…}} is not closed",
  ],
  [
    entry("x", [{ tool_calls: [{ name: "a", arguments: { b: ["{{observation:[}}"] } }] }]),
    "p.jsonl:2: variants[0][0].tool_calls[0].arguments: ",
  ],
])("a policy file with the line %p is refused with line and field", (line, message) => {
  let error: unknown;
  try {
    parsePolicy(`${entry("ok", [{ content: "a" }])}\n${line}`, "p.jsonl");
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(ServiceError);
  expect((error as ServiceError).message).toStartWith(message);
});

test("an empty policy file is refused", () => {
  expect(() => parsePolicy("\n", "p.jsonl")).toThrow("p.jsonl: file: holds no policy");
});

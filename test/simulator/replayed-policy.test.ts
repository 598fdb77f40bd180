import { expect, test } from "bun:test";
import { nextTurn, parsePolicy, Unscripted } from "../../src/simulator/policy.ts";
import { exampleTrajectory } from "../support/trajectories.ts";

const asked = (seed: number, content = "¿ä𝄞?") => ({
  messages: [
    { role: "system" as const, content: "another system message" },
    { role: "user" as const, content },
  ],
  seed,
});

test("recorded rollouts are said again, turn for turn, and the seed chooses among them", () => {
  const other = exampleTrajectory();
  const last = other.messages[5];
  if (last) last.content = "5";
  const lines = [exampleTrajectory(), { id: "x", reward: 1, trajectory: other }];
  const policy = parsePolicy(
    lines.map((line) => JSON.stringify(line)).join("\n"),
    "rollouts.jsonl",
  );
  expect(nextTurn(policy, asked(0), 0).said).toEqual({
    content: "<think>\nhm\n</think>\n\n",
    toolCalls: [
      { name: "think", arguments: '{"n": 0' },
      { name: "think", arguments: '{"n": 1' },
    ],
    finishReason: "tool_calls",
  });
  const answers = [0, 1, 2, -1].map((seed) => nextTurn(policy, asked(seed), 1).said.content);
  expect(answers).toEqual(["4", "5", "4", "5"]);
});

test("what was not recorded is said to be missing", () => {
  const policy = parsePolicy(JSON.stringify(exampleTrajectory()), "rollouts.jsonl");
  expect(() => nextTurn(policy, asked(0), 2)).toThrow(Unscripted);
  expect(() => nextTurn(policy, asked(0, "something else"), 0)).toThrow("something else");
});

test("scripts and recorded rollouts are not mixed", () => {
  const script = JSON.stringify({ match: "", variants: [[{ content: "x" }]] });
  const text = `${JSON.stringify(exampleTrajectory())}\n${script}`;
  expect(() => parsePolicy(text, "p.jsonl")).toThrow("mixes scripts and recorded rollouts");
});

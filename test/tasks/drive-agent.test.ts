import { expect, test } from "bun:test";
import type { AgentTask } from "../../src/tasks/drive-agent.ts";
import { renderPrompt } from "../../src/tasks/prompt.ts";
import type { RunContext } from "../../src/tasks/task-kind.ts";
import { FakeEngine, type Scripted, says } from "../support/fake-engine.ts";
import { conversing } from "../support/play.ts";
import { runContext, TASK_SETTINGS } from "../support/task-context.ts";

const TASK: AgentTask = {
  prompt: { texts: { system: "You solve.", user: "Solve {{problem}} {{unknown}}\n" }, fields: {} },
  tools: ["think", "finish"],
  maxTurns: 4,
};

function setup(script: Scripted[], changes: Partial<RunContext> = {}) {
  const engine = new FakeEngine(script);
  const converse = conversing(engine);
  return { engine, context: runContext({ converse, ...changes }) };
}

test("a prompt has the fields of its row, and what a rollout says instead of the kind's texts", () => {
  const texts = { system: "S {{problem}}\n", user: "U {{problem}}{{other}}" };
  const fields = { problem: "1+1 {{problem}} $&" };
  expect(renderPrompt(texts, {}, fields)).toEqual([
    { role: "system", content: "S 1+1 {{problem}} $&" },
    { role: "user", content: "U 1+1 {{problem}} $&{{other}}" },
  ]);
  const changes = { system_prompt: "", user_prompt: "Mine: {{problem}}" };
  expect(renderPrompt(texts, changes, fields)).toEqual([
    { role: "user", content: "Mine: 1+1 {{problem}} $&" },
  ]);
  const everyObjects = { user_prompt: "{{constructor}} {{toString}}" };
  expect(renderPrompt(texts, everyObjects, fields).at(-1)?.content).toBe(
    "{{constructor}} {{toString}}",
  );
});

test("the rollout's rules win over the service's, and those over the kind's", async () => {
  const turns = async (agent: object, service: object = {}) => {
    const settings = { ...TASK_SETTINGS, agent: { ...TASK_SETTINGS.agent, ...service } };
    const script = ["a", "b", "c", "d", "e", "f"].map((text) => says(text));
    const t = setup(script, { options: { agent }, settings });
    const { stopReason } = await t.context.agent(TASK);
    return [stopReason, t.engine.requests.length];
  };
  expect(await turns({})).toEqual(["max_turns", 4]);
  expect(await turns({}, { maxTurns: 3 })).toEqual(["max_turns", 3]);
  expect(await turns({ max_turns: 2 }, { maxTurns: 3 })).toEqual(["max_turns", 2]);
  expect(await turns({ max_idle_turns: 1 }, { maxIdleTurns: 3 })).toEqual(["loop", 1]);
  expect(await turns({ max_sampled_tokens: 2 })).toEqual(["token_budget", 1]);
});

test("the reminder is the rollout's own where it has one", async () => {
  const t = setup([says("a"), says("b")], {
    options: { agent: { reminder: "Go on!", max_turns: 2 } },
  });
  await t.context.agent(TASK);
  expect(t.engine.requests[1]?.messages.at(-1)).toEqual({ role: "user", content: "Go on!" });
});

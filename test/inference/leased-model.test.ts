import { expect, test } from "bun:test";
import { Connections } from "../../src/inference/exchange.ts";
import { leasedModel } from "../../src/inference/leased-model.ts";
import { Conversation } from "../../src/inference/tokens/conversation.ts";
import { tokenModels } from "../../src/inference/tokens/token-models.ts";
import { failureOf } from "../support/failure.ts";
import { balanceSetup } from "./balance-setup.ts";

const NEVER = new AbortController().signal;
const ASK = [{ role: "user" as const, content: "How many lines?" }];
const SAID = { role: "assistant" as const, content: "Three." };

/** Two engines that tokenise for a rollout which begins on the first. */
async function setup(options: Parameters<typeof balanceSetup>[0] = {}) {
  const t = balanceSetup(options);
  const [a, b] = [await t.simulate("a"), await t.simulate("b")];
  t.registry.add(a.backend);
  t.registry.add(b.backend);
  const { jobId, backend } = t.rollout("a");
  const connections = new Connections();
  const load = tokenModels(connections);
  const job = { jobId, attempt: 1 };
  return {
    ...{ t, a, b },
    where: () => t.registry.trajectory(jobId)?.backendId,
    model: () => leasedModel({ backend, turns: t.gate, job, load }, NEVER),
    async [Symbol.asyncDispose]() {
      connections[Symbol.dispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

/** The ids of a conversation of two turns; `between` happens before the second. */
async function twoTurns(model: Awaited<ReturnType<typeof leasedModel>>, between = async () => {}) {
  const open = () => new Conversation(model, ASK, { tools: [] });
  const conversation = await model.settle(open, NEVER);
  const first = await model.settle(() => [...conversation.prompt()], NEVER);
  const sampled = await model.settle(() => model.tokenizer.encode("Three.<|im_end|>"), NEVER);
  conversation.sampled(sampled, SAID);
  conversation.add({ role: "user", content: "And words?" });
  await between();
  const second = await model.settle(() => [...conversation.prompt()], NEVER);
  expect(second.slice(0, first.length + sampled.length)).toEqual([...first, ...sampled]);
  return second;
}

test("a rollout whose engine tokenises goes on with another one, and with the same ids", async () => {
  await using s = await setup();
  const expected = await twoTurns(await s.model());
  expect(s.where()).toBe("a");
  const leaveA = async () => {
    s.t.registry.remove("a", "move");
    await s.a.stop();
  };
  expect(await twoTurns(await s.model(), leaveA)).toEqual(expected);
  expect(s.where()).toBe("b");
});

test("one that is gone before it was asked at all costs no rollout either", async () => {
  await using s = await setup();
  await s.a.stop();
  expect((await twoTurns(await s.model())).length).toBeGreaterThan(0);
  expect(s.where()).toBe("b");
});

test("where none is left it is a failure of the engines', in bounded time", async () => {
  await using s = await setup({ backendWaitMs: 200, maxRetries: 1 });
  const model = await s.model();
  await Promise.all([s.a.stop(), s.b.stop()]);
  const failure = await failureOf(() => twoTurns(model));
  expect([failure.code, failure.boundary]).toEqual(["engine_unreachable", "engine"]);
});

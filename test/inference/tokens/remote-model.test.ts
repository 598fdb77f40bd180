import { describe, expect, test } from "bun:test";
import type { Backend } from "../../../src/inference/engine.ts";
import { Connections } from "../../../src/inference/exchange.ts";
import { canonicalTurn } from "../../../src/inference/tokens/canonical-turn.ts";
import { Conversation } from "../../../src/inference/tokens/conversation.ts";
import { MarkedText } from "../../../src/inference/tokens/dialects/marked-text.ts";
import { parseReply } from "../../../src/inference/tokens/dialects/reply.ts";
import { EngineRoutes } from "../../../src/inference/tokens/engine-routes.ts";
import { RemoteAnswers } from "../../../src/inference/tokens/remote-answers.ts";
import { loadRemoteModel } from "../../../src/inference/tokens/remote-model.ts";
import { stopsOf, type TokenModel } from "../../../src/inference/tokens/token-model.ts";
import { tokenModels } from "../../../src/inference/tokens/token-models.ts";
import { VERIFY_CASES, type VerifyCase } from "../../../src/inference/tokens/verify-cases.ts";
import { failureOf } from "../../support/failure.ts";
import { BASH, type Family, modelOf, user } from "./models.ts";

const NOW = new Date(0);
const signal = new AbortController().signal;

// biome-ignore lint/suspicious/noExplicitAny: a body as an engine takes it.
type Body = any;

/**
 * An engine's routes for text, over a model folder; as vLLM's, they parse calls and read reasoning under its
 * new name only.
 */
function serveRoutes(model: TokenModel) {
  const { template, tokenizer } = model;
  const parsed = (messages: Body[]) =>
    messages.map(({ tool_calls, reasoning, reasoning_content: _, ...message }) => ({
      ...message,
      ...(reasoning && { reasoning_content: reasoning }),
      ...(tool_calls && {
        tool_calls: tool_calls.map((call: Body) => {
          const args = JSON.parse(call.function.arguments);
          return { ...call, function: { ...call.function, arguments: args } };
        }),
      }),
    }));
  const tokens = ({ prompt, messages, tools = [], ...body }: Body) => {
    if (prompt !== undefined) return tokenizer.encode(prompt);
    const variables = body.chat_template_kwargs ?? {};
    const options = { addGenerationPrompt: body.add_generation_prompt, variables, now: NOW };
    return tokenizer.encode(template.render(parsed(messages), tools, options));
  };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body: Body = await request.json();
      try {
        if (request.url.endsWith("/tokenize")) return Response.json({ tokens: tokens(body) });
        return Response.json({ prompt: tokenizer.decode(body.tokens) });
      } catch (error) {
        return Response.json({ error: { message: String(error) } }, { status: 400 });
      }
    },
  });
  const connections = new Connections();
  const url = `http://127.0.0.1:${server.port}/v1`;
  const backend: Backend = { id: "b", url, model: "m" };
  return {
    ...{ connections, backend },
    load: () => loadRemoteModel(connections, backend, signal),
    async [Symbol.asyncDispose]() {
      connections[Symbol.dispose]();
      await server.stop(true);
    },
  };
}

/** The prompts of all calls of a conversation, and its forks. */
async function walk(model: TokenModel, local: TokenModel, given: VerifyCase) {
  const { tools, variables, messages } = given;
  const { form, endOfTurn } = local.shape(tools, variables);
  const rendering = { template: local.template, form, tools, variables, now: NOW };
  const first = messages.findIndex(({ role }) => role === "assistant");
  const options = { tools, variables, now: NOW };
  const begin = messages.slice(0, first);
  const conversation = await model.settle(() => new Conversation(model, begin, options), signal);
  const prompts: number[][] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role !== "assistant") continue;
    const rest = messages.slice(index + 1);
    const next = rest.findIndex(({ role }) => role === "assistant");
    const after = next < 0 ? rest : rest.slice(0, next);
    prompts.push(await model.settle(() => [...conversation.prompt()], signal));
    const said = canonicalTurn(
      rendering,
      { endOfTurn, stops: stopsOf(model) },
      messages.slice(0, index),
      message,
      after,
    );
    conversation.sampled(local.tokenizer.encode(said), message);
    conversation.add(...after);
  }
  const forks = conversation.segments.map(({ fork }) => fork?.reason ?? null);
  return { prompts, forks };
}

describe.each(["qwen3", "mistral_nemo"] satisfies Family[])("over %s's routes", (family) => {
  test("all conversations of verify-template get the ids that its folder gives", async () => {
    const local = await modelOf(family);
    await using engine = serveRoutes(local);
    const remote = await engine.load();
    for (const given of VERIFY_CASES) {
      const expected = await walk(local, local, given).catch((error) => error.code);
      const found = await walk(remote, local, given).catch((error) => error.code);
      expect([given.name, found]).toEqual([given.name, expected]);
    }
  });

  test("its dialect, its end of turn and its stop ids are found out", async () => {
    const local = await modelOf(family);
    await using engine = serveRoutes(local);
    const remote = await engine.load();
    expect(remote.dialect).toBe(local.dialect);
    const shapeOf = (model: TokenModel) => model.settle(() => model.shape([BASH], {}), signal);
    const [found, expected] = [await shapeOf(remote), await shapeOf(local)];
    expect({ ...found, form: null }).toEqual({ ...expected, form: null });
    expect([...remote.stopIds].every((id) => local.stopIds.has(id))).toBe(true);
    expect(remote.stopIds.size).toBe(1);
  });
});

test("a call is read from sampled ids, and a quoted marker is none", async () => {
  const local = await modelOf("qwen3");
  await using engine = serveRoutes(local);
  const remote = await engine.load();
  const call = '{"name": "execute_bash", "arguments": {"command": "ls"}}';
  const real = local.tokenizer.encode(`I look.\n<tool_call>\n${call}\n</tool_call><|im_end|>`);
  const quoted = ["<tool", "_call>", call, "</tool", "_call>"].flatMap((part) =>
    local.tokenizer.encode(part),
  );
  const read = (ids: number[]) =>
    remote.settle(() => {
      const source = MarkedText.ofIds(remote.tokenizer, ids, remote.stopIds);
      const { dialect } = remote;
      return parseReply(source, { dialect, tools: [BASH], startsInReasoning: false });
    }, signal);
  expect(await read(real)).toMatchObject({ content: "I look.", calls: [{ status: "ok" }] });
  expect((await read(quoted)).calls).toEqual([]);
});

test("an engine that is gone is a failure of the engine's, and nothing is half done", async () => {
  const engine = serveRoutes(await modelOf("qwen3"));
  const remote = await engine.load();
  const options = { tools: [], now: NOW };
  const begin = [user("Hi")];
  const conversation = await remote.settle(() => new Conversation(remote, begin, options), signal);
  const before = [...conversation.prompt()];
  conversation.sampled([9707], { role: "assistant", content: "Hello" });
  conversation.add(user("And?"));
  await engine[Symbol.asyncDispose]();
  const failure = await failureOf(() => remote.settle(() => conversation.prompt(), signal));
  expect(failure.boundary).toBe("engine");
  expect(conversation.segments.map(({ ids }) => ids.length)).toEqual([before.length + 1]);
});

test("is loaded once for all rollouts, of which one that leaves costs the others nothing", async () => {
  await using engine = serveRoutes(await modelOf("qwen3"));
  const models = tokenModels(engine.connections);
  const leaving = new AbortController();
  const reason = new Error("cancelled");
  const left = models(engine.backend, leaving.signal).catch((error) => error);
  const stays = models(engine.backend, signal);
  leaving.abort(reason);
  expect(await left).toBe(reason);
  expect(await models(engine.backend, signal)).toBe(await stays);
});

test("an abort ends the wait for an answer, with its reason", async () => {
  const answers = new RemoteAnswers();
  const controller = new AbortController();
  const reason = new Error("cancelled");
  const routes = new EngineRoutes(new Connections(), { id: "b", url: "http://x/v1", model: "m" });
  const never = (_routes: EngineRoutes, signal: AbortSignal) =>
    new Promise<string>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
      queueMicrotask(() => controller.abort(reason));
    });
  const waiting = answers.settle(() => answers.need("a", never), routes, controller.signal);
  expect(await waiting.catch((error) => error)).toBe(reason);
});

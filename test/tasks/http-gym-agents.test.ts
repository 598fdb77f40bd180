import { describe, expect, test } from "bun:test";
import type { Message } from "../../src/inference/engine.ts";
import { http } from "../../src/tasks/http/http.ts";
import { failureOf } from "../support/failure.ts";
import { calls, type Scripted, says } from "../support/fake-engine.ts";
import { jsonServer } from "../support/json-server.ts";
import { play } from "../support/play.ts";
import { TASK_SETTINGS } from "../support/task-context.ts";

type Asked = { path: string; body: Record<string, unknown>; cookie: string | null };

/** A resources server whose every answer changes the session's cookie. */
function gymServer(answer: (path: string, turn: number) => unknown) {
  const asked: Asked[] = [];
  const server = jsonServer((path, body: Record<string, unknown>, request) => {
    const cookie = request.headers.get("cookie");
    const turn = asked.filter((one) => one.path === path).length;
    asked.push({ path, body, cookie });
    const made = answer(path, turn);
    if (made instanceof Response) return made;
    return Response.json(made, { headers: { "set-cookie": `n=${asked.length}; Path=/` } });
  });
  return { asked, url: server.url, [Symbol.dispose]: () => server[Symbol.dispose]() };
}

const TOOL = { type: "function", name: "look", description: "looks", parameters: {} };

function rolloutOf(url: string, script: Scripted[], more: object = {}, options: object = {}) {
  const row = {
    data_source: "nemo_gym",
    prompt: [{ role: "user", content: "Go." }],
    verifier: { url, protocol: "nemo_gym" },
    agent_tools: [],
    gym_row: { task_idx: 7, responses_create_params: { input: "Go.", tools: [TOOL] } },
    ...more,
  };
  const gym = { ...TASK_SETTINGS.http, timeoutMs: 2000, allowedUrls: [url] };
  return play(http, row, script, { settings: { ...TASK_SETTINGS, http: gym }, options });
}

const outputsOf = ({ body }: Asked) =>
  (body.response as { output: Record<string, unknown>[] }).output;
const shown = (t: ReturnType<typeof rolloutOf>, call: number) =>
  t.engine.requests[call]?.messages.map(({ role, content }) => `${role}: ${content}`);

describe("the simple agent", () => {
  const served = (path: string) =>
    path === "/verify" ? { reward: 1 } : path === "/look" ? new Response("same") : {};

  test("goes on for as many equal calls as the model makes", async () => {
    using server = gymServer(served);
    const script = [...Array(40).fill(calls(["look", {}])), says("Done.")];
    expect(await rolloutOf(server.url, script).verdict()).toMatchObject({ reward: 1 });
    expect(server.asked.filter(({ path }) => path === "/look")).toHaveLength(40);
  });

  test("ends at the turns that the rollout asks for, and its conversation is verified", async () => {
    using server = gymServer(served);
    const script = Array(3).fill(calls(["look", {}]));
    const t = rolloutOf(server.url, script, {}, { agent: { max_turns: 3 } });
    expect((await t.run()).stop_reason).toBe("max_turns");
  });

  test.each(["{", "[1]", ""])(
    "tells the model what is wrong with the arguments %p",
    async (args) => {
      using server = gymServer(served);
      const t = rolloutOf(server.url, [calls(["look", args]), says("Done.")]);
      expect((await t.verdict()).reward).toBe(1);
      const told = JSON.parse(t.engine.requests[1]?.messages.at(-1)?.content ?? "");
      expect(told.error).toStartWith("Invalid tool call arguments: ");
      expect(server.asked.map(({ path }) => path)).toEqual(["/seed_session", "/verify"]);
    },
  );

  test("has only the model's own words verified, not those of the prompt", async () => {
    using server = gymServer(served);
    const prompt: Message[] = [
      { role: "user", content: "2+2?" },
      { role: "assistant", content: "5" },
      { role: "user", content: "Sure?" },
    ];
    await rolloutOf(server.url, [says("4")], { prompt }).verdict();
    expect(outputsOf(server.asked.at(-1) as Asked)).toMatchObject([
      { role: "assistant", content: [{ text: "4" }] },
    ]);
  });
});

describe("the gymnasium agent", () => {
  const verifierOf = (url: string) => ({ url, protocol: "nemo_gym", agent: "gymnasium" });
  const gymnasium = (url: string, script: Scripted[], more: object = {}) =>
    rolloutOf(url, script, { verifier: verifierOf(url), ...more });

  test("shows observations and tool outputs, steps with each message, and adds up the rewards", async () => {
    using server = gymServer((path, turn) => {
      if (path === "/reset") return { observation: "You are at 0.", info: { seen: 1 } };
      if (turn === 0)
        return {
          reward: 0.25,
          info: { tool_outputs: [{ call_id: "call_0", output: "a wall" }] },
        };
      return turn === 1
        ? { reward: 0.25, observation: "You are at 1." }
        : { reward: 0.5, terminated: true, observation: "unseen" };
    });
    const t = gymnasium(server.url, [calls(["look", {}]), says("north"), says("north")]);
    expect(await t.verdict()).toMatchObject({ reward: 1, rule: "reward_server" });
    expect(shown(t, 2)).toEqual([
      ...["user: Go.", "user: You are at 0.", "assistant: ", "tool: a wall"],
      ...["assistant: north", "user: You are at 1."],
    ]);
    expect(t.toolNames()).toEqual(["look"]);
    expect(server.asked.map(({ path, cookie }) => `${path} ${cookie}`)).toEqual([
      ...["/reset null", "/step n=1", "/step n=2", "/step n=3"],
    ]);
    expect(server.asked[0]?.body).toMatchObject({ task_idx: 7 });
    expect(server.asked.slice(1).map(outputsOf)).toMatchObject([
      [{ type: "function_call", call_id: "call_0", name: "look", arguments: "{}" }],
      [{ type: "message", content: [{ text: "north" }] }],
      [{ type: "message", content: [{ text: "north" }] }],
    ]);
  });

  test("begins without a prompt where the server has one", async () => {
    using server = gymServer((path) =>
      path === "/reset" ? { observation: "Begin." } : { reward: 1, truncated: true },
    );
    const t = gymnasium(server.url, [says("x")], { prompt: [] });
    expect((await t.verdict()).reward).toBe(1);
    expect(shown(t, 0)).toEqual(["user: Begin."]);
  });

  test.each([
    ["ends", { terminated: true, reward: 1 }, undefined],
    ["fails", new Response("down", { status: 500 }), "reward_server_failed"],
    ["answers something else", { reward: "1" }, "reward_server_failed"],
  ])("closes a session that asks for it when the episode %s", async (_how, step, code) => {
    using server = gymServer((path) => {
      if (path === "/reset") return { info: { supports_explicit_close: true } };
      return path === "/step" ? step : new Response("no", { status: 500 });
    });
    const ended = await gymnasium(server.url, [says("x")])
      .run()
      .then(
        () => undefined,
        (error) => error.code,
      );
    expect([ended, server.asked.at(-1)?.path]).toEqual([code, "/close"]);
  });

  test("repeats a step that failed only where the server knows steps by their ids", async () => {
    const steps = async (idempotent: boolean) => {
      using server = gymServer((path, turn) => {
        if (path === "/reset") return { info: { supports_step_idempotency: idempotent } };
        return turn === 0 ? new Response("busy", { status: 503 }) : { reward: 1, terminated: true };
      });
      await gymnasium(server.url, [says("x")])
        .run()
        .catch(() => null);
      return server.asked.slice(1).map(({ body }) => body._ng_step_request_id);
    };
    expect(await steps(false)).toEqual([undefined]);
    const ids = await steps(true);
    expect([ids.length, new Set(ids).size, typeof ids[0]]).toEqual([2, 1, "string"]);
  });

  test.each([-1, 1.5, 100])("has no reward where the sum is %p, and says so", async (reward) => {
    using server = gymServer((path) => (path === "/reset" ? {} : { reward, terminated: true }));
    const failure = await failureOf(gymnasium(server.url, [says("x")]).verdict);
    expect(failure).toMatchObject({ code: "reward_out_of_range", retryable: false });
    expect(failure.message).toContain(`reward ${reward}`);
  });
});

describe("the aviary agent", () => {
  const aviary = (url: string, script: Scripted[]) =>
    rolloutOf(url, script, {
      prompt: [],
      verifier: { url, protocol: "nemo_gym", agent: "aviary" },
    });
  const seed = { env_id: "e1", obs: [{ role: "user", content: "Solve." }], tools: [TOOL] };

  test("has the environment's tools and first words, and its reward after the end", async () => {
    using server = gymServer((path, turn) => {
      if (path === "/seed_session") return seed;
      if (path === "/verify") return { reward: 0.5 };
      const obs = [{ type: "function_call_output", call_id: "call_0", output: `saw ${turn}` }];
      return { obs, reward: 0, done: turn === 1 };
    });
    const t = aviary(server.url, [calls(["look", {}]), calls(["look", "{bad"])]);
    expect(await t.verdict()).toMatchObject({ reward: 0.5 });
    expect([t.toolNames(), shown(t, 1)]).toEqual([
      ["look"],
      ["user: Solve.", "assistant: ", "tool: saw 0"],
    ]);
    expect(server.asked.map(({ path }) => path)).toEqual([
      ...["/seed_session", "/step", "/step", "/close", "/verify"],
    ]);
    expect(server.asked[0]?.body).toEqual({ task_idx: 7 });
    expect(server.asked[2]?.body).toEqual({
      env_id: "e1",
      action: [{ type: "function_call", call_id: "call_0", name: "look", arguments: "{bad" }],
    });
    expect(server.asked.at(-1)?.body).toMatchObject({
      task_idx: 7,
      response: { env_id: "e1", group_id: "7", contains_transitions: false },
    });
  });

  test("ends at a message without a call", async () => {
    using server = gymServer((path) => (path === "/verify" ? { reward: 0 } : seed));
    const t = aviary(server.url, [says("I give up.")]);
    expect(await t.run()).toMatchObject({ stop_reason: "done", final_message: "I give up." });
    expect(server.asked.map(({ path }) => path)).toEqual(["/seed_session", "/close"]);
  });
});

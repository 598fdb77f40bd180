import { describe, expect, test } from "bun:test";
import { http } from "../../src/tasks/http/http.ts";
import { failureOf } from "../support/failure.ts";
import { calls, type Scripted, says } from "../support/fake-engine.ts";
import { jsonServer } from "../support/json-server.ts";
import { play } from "../support/play.ts";
import { TASK_SETTINGS } from "../support/task-context.ts";

const ROW = {
  data_source: "http",
  prompt: [{ role: "user", content: "What is 1+1?" }],
  reward_model: { ground_truth: ["2"] },
};
const ANSWER: Scripted[] = [calls(["finish", { message: "\\boxed{2}" }])];

function settingsOf(changes: Partial<(typeof TASK_SETTINGS)["http"]>) {
  return { ...TASK_SETTINGS, http: { ...TASK_SETTINGS.http, timeoutMs: 2000, ...changes } };
}

describe("an external reward server", () => {
  test.each([
    [{ score: 1 }, 1],
    [{ score: 0.25 }, 0.25],
    [{ score: true }, 1],
    [{ score: [false, { why: "no" }] }, 0],
  ])("that answers %j gives %p", async (answer, reward) => {
    using server = jsonServer(() => answer);
    const settings = settingsOf({ rewardServers: [server.url] });
    expect(await play(http, ROW, ANSWER, { settings }).verdict()).toMatchObject({
      reward,
      rule: "reward_server",
    });
    expect(server.asked).toEqual([
      {
        path: "/compute_score",
        body: {
          solution_str: "\\boxed{2}",
          ground_truth: ["2"],
          data_source: "http",
          extra_info: null,
        },
      },
    ]);
  });

  test("that fails gives no reward, and another one is asked before", async () => {
    using down = jsonServer(() => new Response("oom", { status: 500 }));
    using up = jsonServer(() => ({ score: 1 }));
    const both = settingsOf({ rewardServers: [down.url, up.url] });
    expect((await play(http, ROW, ANSWER, { settings: both }).verdict()).reward).toBe(1);
    const none = settingsOf({ rewardServers: [down.url] });
    const failure = await failureOf(play(http, ROW, ANSWER, { settings: none }).verdict);
    expect(failure).toMatchObject({
      code: "reward_server_failed",
      boundary: "verifier",
      retryable: true,
    });
  });

  test.each([{ score: "1" }, {}, { score: [] }, null, [1]])(
    "whose answer is %j has failed",
    async (answer) => {
      using server = jsonServer(() => answer);
      const settings = settingsOf({ rewardServers: [server.url] });
      const failure = await failureOf(play(http, ROW, ANSWER, { settings }).verdict);
      expect(failure.code).toBe("reward_server_failed");
    },
  );
});

describe("a NeMo Gym resources server", () => {
  const rowOf = (url: string) => ({
    data_source: "nemo_gym",
    responses_create_params: {
      input: [{ role: "user", content: "Weather in Rome?" }],
      tools: [
        { type: "function", name: "get_weather", description: "w", parameters: { type: "object" } },
      ],
    },
    verifier: { url, protocol: "nemo_gym" },
    city: "Rome",
  });
  const script = () => [calls(["get_weather", { city: "Rome" }]), says("It is sunny.")];

  test("has a session, offers its tools, and verifies the whole conversation", async () => {
    const cookies: (string | null)[] = [];
    using server = jsonServer((path, body: { city?: string }, request) => {
      cookies.push(request.headers.get("cookie"));
      const headers = { "set-cookie": `session=${path.slice(1)}; Path=/` };
      if (path === "/verify") return Response.json({ ...body, reward: 0.5 }, { headers });
      if (path === "/seed_session") return Response.json({}, { headers });
      return new Response(`sunny in ${body.city}`, { status: 418, headers });
    });
    const row = rowOf(server.url);
    const t = play(http, row, script(), { settings: settingsOf({ allowedUrls: [server.url] }) });
    expect(await t.verdict()).toMatchObject({ reward: 0.5, rule: "reward_server" });
    expect(t.toolNames()).toEqual(["finish", "get_weather"]);
    expect(t.engine.requests[1]?.messages.at(-1)?.content).toBe("sunny in Rome");
    expect(server.asked.map(({ path }) => path)).toEqual([
      "/seed_session",
      "/get_weather",
      "/verify",
    ]);
    expect(cookies).toEqual([null, "session=seed_session", "session=get_weather"]);
    const verified = server.asked[2]?.body as { city: string; response: { output: unknown[] } };
    expect(verified.city).toBe("Rome");
    expect(verified.response.output).toEqual([
      {
        type: "function_call",
        call_id: "call_0",
        name: "get_weather",
        arguments: '{"city":"Rome"}',
      },
      { type: "function_call_output", call_id: "call_0", output: "sunny in Rome" },
      {
        id: "msg_2",
        type: "message",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: "It is sunny.", annotations: [] }],
      },
    ]);
  });

  test.each(["/seed_session", "/get_weather", "/verify"])(
    "that is gone at %s has failed, and gives no reward",
    async (at) => {
      using server = jsonServer((path) => {
        if (path !== at) return {};
        server[Symbol.dispose]();
        return new Promise(() => {});
      });
      const settings = settingsOf({ allowedUrls: [server.url], timeoutMs: 500 });
      const failure = await failureOf(
        play(http, rowOf(server.url), script(), { settings }).verdict,
      );
      expect(failure.code).toBe("reward_server_failed");
    },
  );
});

describe("an address in a row", () => {
  const refusal = async (url: string, allowed: string[]) => {
    const instance = http.parse({ ...ROW, verifier: { url } });
    const settings = settingsOf({ allowedUrls: allowed });
    const work = async () => http.sandboxes(instance, settings);
    return await work().then(
      () => null,
      ({ code, field }) => [code, field],
    );
  };
  const REFUSED = ["invalid_field", "instance.verifier.url"];

  test("is called only below what the operator allows", async () => {
    expect(await refusal("http://h:1/a/b", ["http://h:1/a"])).toBeNull();
    expect(await refusal("http://h:1/a", ["http://h:1"])).toBeNull();
    expect(await refusal("http://h:1/a", [])).toEqual(REFUSED);
    expect(await refusal("http://h:1/ab", ["http://h:1/a"])).toEqual(REFUSED);
    expect(await refusal("http://h:1/a/../b", ["http://h:1/a"])).toEqual(REFUSED);
    expect(await refusal("http://h:2/a", ["http://h:1/a"])).toEqual(REFUSED);
    expect(await refusal("http://h:1@evil/a", ["http://h:1"])).toEqual(REFUSED);
    expect(await refusal("file:///etc/passwd", ["file:///etc"])).toEqual(REFUSED);
  });

  test("is not left by the name of a tool", async () => {
    const named = (name: string) => () =>
      http.parse({
        ...ROW,
        verifier: { url: "http://h:1/a", protocol: "nemo_gym" },
        responses_create_params: { input: "x", tools: [{ name }] },
      });
    for (const name of ["..", ".", "a/b", ""]) {
      const field = "instance.responses_create_params.tools[0].name";
      expect(await failureOf(named(name))).toMatchObject({ code: "invalid_field", field });
    }
    expect(named("a.b")).not.toThrow();
  });

  test("is not needed where the operator has reward servers, and missed where not", async () => {
    const instance = http.parse(ROW);
    expect(http.sandboxes(instance, settingsOf({ rewardServers: ["http://h"] })).agent).toBe(false);
    const missing = await failureOf(() => http.sandboxes(instance, settingsOf({})));
    expect(missing.mend).toContain("--reward-servers");
  });
});

test("tools of ours need a sandbox only where they work in one", () => {
  const settings = settingsOf({ rewardServers: ["http://h"] });
  const agentOf = (agent_tools: string[]) =>
    http.sandboxes(http.parse({ ...ROW, agent_tools }), settings).agent;
  expect([agentOf(["think", "finish"]), agentOf(["execute_bash", "finish"])]).toEqual([
    false,
    true,
  ]);
});

import { describe, expect, test } from "bun:test";
import { serve, simulate, turn } from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const SCRIPTS = [
  { match: "six", variants: [[{ content: "It is \\boxed{42}." }]] },
  { match: "two", variants: [[{ content: "It is \\boxed{5}." }]] },
  { match: "slow", variants: [[{ content: "It is \\boxed{1}.", delay_ms: 3000 }]] },
  { match: "never", variants: [[turn("nothing", {})]] },
];

const row = (problem: string, expected_answer: string, index = 0) => ({
  responses_create_params: { input: [{ role: "user", content: problem }], temperature: 1 },
  ...{ expected_answer, agent_ref: { name: "rolloutd" }, verifier_type: "math_with_judge" },
  ...{ _ng_task_index: index, _ng_rollout_index: 0 },
});

/** How long NeMo Gym's client pauses before it sends a body again. */
const CLIENT_PAUSE_MS = 500;

type Item = {
  prompt_token_ids?: number[];
  generation_token_ids?: number[];
  generation_log_probs?: number[];
};
type Answer = Record<string, unknown> & { response: { output: Item[] } };

async function setup(flags: string[] = []) {
  const dir = tempDir();
  const model = dir.file("model");
  const engine = await simulate(dir.path, SCRIPTS, ["--model-dir", model]);
  const data = dir.file("data");
  const own = ["--backend", engine.url, "--model-dir", model, "--num-attempts", "1", ...flags];
  const service = await serve(data, own);
  const send = (path: string, body?: unknown, signal?: AbortSignal) => {
    const init =
      body === undefined
        ? {}
        : {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(body),
          };
    return fetch(`${service.url}${path}`, { ...init, ...(signal && { signal }) });
  };
  return {
    service,
    engine,
    data,
    flags: own,
    send,
    rollouts: async () => {
      const page = await (await send("/v1/rollouts")).json();
      return (page as { rollouts: { id: string; state: string }[] }).rollouts;
    },
    run: async (body: unknown) => {
      const response = await send("/run", body);
      return { status: response.status, answer: (await response.json()) as Answer };
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}

describe("NeMo Gym's routes, as its clients use them", () => {
  test("say where the agent is, as a JSON text of YAML", async () => {
    await using t = await setup();
    const yaml = (await (await t.send("/global_config_dict_yaml")).json()) as string;
    const { port } = new URL(t.service.url);
    expect(Bun.YAML.parse(yaml)).toEqual({
      rolloutd: { responses_api_agents: { rolloutd: { host: "127.0.0.1", port: Number(port) } } },
    });
    const [instance] = (await (await t.send("/server_instances")).json()) as {
      start_time: number;
    }[];
    expect(instance).toMatchObject({ name: "rolloutd", url: t.service.url });
    const age_s = Date.now() / 1000 - (instance?.start_time ?? 0);
    expect(age_s > 0 && age_s < 60).toBe(true);
  });

  test("answer rows with rewards, tokens that a sample can be made of, and metrics", async () => {
    await using t = await setup();
    const right = row("What is seven times six?", "42");
    const answers = await Promise.all([t.run(right), t.run(row("What is two plus two?", "4", 1))]);
    expect(answers.map(({ status, answer }) => [status, answer.reward])).toEqual([
      ...[
        [200, 1],
        [200, 0],
      ],
    ]);
    const answer = answers[0]?.answer as Answer;
    expect(answer).toMatchObject({ ...right, resolved: 1, num_turns: 1, mask_sample: false });
    const [item] = answer.response.output;
    expect(item?.prompt_token_ids?.length).toBeGreaterThan(0);
    expect(item?.generation_log_probs).toHaveLength(item?.generation_token_ids?.length ?? -1);
    const verify_responses = answers.map((one) => one.answer);
    const metrics = await (await t.send("/aggregate_metrics", { verify_responses })).json();
    expect(metrics).toMatchObject({ key_metrics: { "mean/reward": 0.5, "pass@1/reward": 50 } });
  });

  test.each([
    ["collector", 200],
    ["rl", 503],
  ] as const)("answer failures in the way of a %s", async (mode, expected) => {
    await using t = await setup(["--gym-status-mode", mode, "--backend-wait-ms", "100"]);
    await t.engine[Symbol.asyncDispose]();
    const { status, answer } = await t.run(row("What is seven times six?", "42"));
    expect([status, answer.reward, answer.mask_sample]).toEqual([expected, 0, true]);
    expect(answer._ng_failure_class).toStartWith("engine_");
    expect((await t.send("/run", { responses_create_params: {} })).status).toBe(400);
  });

  test("go on with a rollout whose client lost its connection and asks again", async () => {
    await using t = await setup();
    const slow = row("Take it slow.", "1");
    const lost = new AbortController();
    const first = t.send("/run", slow, lost.signal).catch(() => null);
    await waitFor(async () => (await t.rollouts())[0]?.state === "active", "the rollout to start");
    lost.abort();
    await first;
    await Bun.sleep(CLIENT_PAUSE_MS);
    const { answer } = await t.run(slow);
    const known = await t.rollouts();
    expect(known.map(({ id }) => id)).toEqual([answer.rollout_id as string]);
    expect(answer.reward).toBe(1);
    expect((await t.run(slow)).answer.rollout_id).not.toBe(answer.rollout_id);
  });

  test("go on with it after the service was killed and started again", async () => {
    const port = await freePort();
    await using t = await setup(["--port", `${port}`]);
    const slow = row("Take it slow.", "1");
    const first = t.send("/run", slow).catch(() => null);
    await waitFor(async () => (await t.rollouts())[0]?.state === "active", "the rollout to start");
    t.service.signal("SIGKILL");
    await Promise.all([first, t.service.exited]);
    await using again = await serve(t.data, [...t.flags, "--port", `${port}`]);
    const { answer } = await t.run(slow);
    expect([answer.reward, (await t.rollouts()).map(({ id }) => id)]).toEqual([
      ...[1, [answer.rollout_id as string]],
    ]);
    expect(again.url).toBe(t.service.url);
  });
});

/** One that a second service can listen on after the first. */
async function freePort(): Promise<number> {
  const server = Bun.serve({ port: 0, fetch: () => new Response() });
  const { port } = server;
  await server.stop(true);
  return port as number;
}

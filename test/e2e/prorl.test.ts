import { describe, expect, test } from "bun:test";
import type { ProrlResult } from "../../src/compat/prorl/result.ts";
import { mathRow, run, sandboxFlags, serve, simulate, start, turn } from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const finish = (message: string) => turn("finish", { message });
const cell = (code: string) => turn("execute_ipython_cell", { code });

const SCRIPTS = [
  { match: "six", variants: [[cell("print(42)"), finish("It is \\boxed{42}.")]] },
  { match: "two", variants: [[finish("It is \\boxed{5}.")]] },
  { match: "slow", variants: [[cell("import time; time.sleep(600)"), finish("\\boxed{1}")]] },
];

const SIX = { ...mathRow("What is seven times six?", "42"), instance_id: "six" };
const SLOW = { ...mathRow("Take it slow.", "1"), instance_id: "slow" };

/** As upstream's clients send them, text mode. */
const TEXT = {
  model: "hosted_vllm/simulated",
  api_key: "mykey",
  ...{ modify_params: false, log_completions: false, native_tool_calling: true },
  ...{ temperature: 0.6, top_p: 0.9, max_iterations: 5 },
};

const NOT_RUNNING = "Server is not running. Please start the server first.";

async function setup(flags: string[] = []) {
  const dir = tempDir();
  const model = dir.file("model");
  const engine = await simulate(dir.path, SCRIPTS, ["--model-dir", model]);
  const second = await simulate(dir.path, SCRIPTS);
  const service = await serve(dir.file("data"), [...sandboxFlags(), ...flags]);
  const send = async (method: "GET" | "POST", path: string, body?: unknown) => {
    const init: RequestInit = { method };
    if (body !== undefined) {
      init.headers = { "content-type": "application/json" };
      init.body = JSON.stringify(body);
    }
    const response = await fetch(`${service.url}${path}`, init);
    return [response.status, await response.json()] as [number, Record<string, unknown>];
  };
  const post = (path: string, body?: unknown) => send("POST", path, body);
  return {
    model,
    /** Addresses as clients write them: with `/v1` by text, bare by tokens. */
    addresses: [engine.url, second.url],
    root: engine.url.replace(/\/v1$/, ""),
    post,
    status: () => send("GET", "/status"),
    process: async (instance: unknown, params: unknown = TEXT, extra = {}) => {
      const body = { instance, sampling_params: params, ...extra };
      const [status, result] = await post("/process", body);
      return { status, result: result as unknown as ProrlResult };
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await second[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}

describe("ProRL's routes, as its clients use them", () => {
  test("are open only between start and stop, and keep addresses over both", async () => {
    await using t = await setup();
    expect(await t.status()).toEqual([503, { detail: NOT_RUNNING }]);
    expect(await t.post("/process", { instance: SIX })).toEqual([503, { detail: NOT_RUNNING }]);
    expect(await t.post("/cancel", { job_id: "x" })).toEqual([503, { detail: NOT_RUNNING }]);
    const [address] = t.addresses;
    expect(await t.post("/add_llm_server", { address })).toEqual([
      200,
      { status: `Buffered LLM server address: ${address}` },
    ]);
    expect(await t.post("/clear_llm_server")).toEqual([
      200,
      { status: "Cleared buffered LLM server addresses" },
    ]);
    expect(await t.post("/start")).toEqual([200, { status: "Server started successfully" }]);
    expect(await t.post("/start")).toEqual([400, { detail: "Server is already running" }]);
    const [status, { detail }] = await t.post("/process", { instance: SIX });
    const none = "No LLM server addresses configured. Please add at least one LLM server address.";
    expect([status, detail]).toEqual([503, none]);
    for (let again = 0; again < 2; again++) {
      expect(await t.post("/add_llm_server", { address })).toEqual([
        200,
        { status: `Added LLM server address: ${address}` },
      ]);
    }
    expect((await t.post("/add_llm_server", {}))[0]).toBe(422);
    const unknown = { data_source: "unregistered_dataset" };
    const [refused, why] = await t.post("/process", { instance: unknown });
    const words = "not registered: Dataset type unregistered_dataset is not registered";
    expect([refused, why.detail]).toEqual([400, expect.stringContaining(words)]);
    expect((await t.process(SIX, { temprature: 1 })).status).toBe(400);
    expect((await t.post("/process", { instance: "row" }))[0]).toBe(422);
    expect(await t.post("/cancel", { job_id: "unknown" })).toEqual([
      200,
      { status: "Cancel requested for job unknown", found: false },
    ]);
    expect((await t.status())[1]).toMatchObject({ status: "running", pending_jobs: 0, total: 0 });
    expect(await t.post("/stop")).toEqual([200, { status: "Server stopped successfully" }]);
    expect(await t.post("/stop")).toEqual([503, { detail: NOT_RUNNING }]);
    expect((await t.post("/start"))[0]).toBe(200);
    expect((await t.process(SIX)).result).toMatchObject({ resolved: true, error: null });
  });

  test("answer many calls at once in text mode, over both engines", async () => {
    await using t = await setup();
    for (const address of t.addresses) await t.post("/add_llm_server", { address });
    await t.post("/start");
    const rows = Array.from({ length: 6 }, (_, index) => ({ ...SIX, trajectory_id: index }));
    const answers = await Promise.all(rows.map((row) => t.process(row)));
    expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200));
    for (const [index, { result }] of answers.entries()) {
      expect(result).toMatchObject({
        ...{ instance_id: "six", trajectory_id: index, resolved: true, reward: 1, finish: true },
        ...{ success: true, error: null, critical_error: null, filter: false },
      });
      const roles = result.messages.map(({ role }) => role);
      expect(roles.slice(-3)).toEqual(["assistant", "tool", "assistant"]);
      expect(result.messages.at(-1)?.tool_calls?.[0]?.name).toBe("finish");
      expect(result.tools.length).toBeGreaterThan(0);
    }
    expect((await t.post("/stop"))[0]).toBe(200);
  });

  test("give ids that are each call's own prompt, in token mode", async () => {
    await using t = await setup();
    await t.post("/add_llm_server", { address: t.root });
    await t.post("/start");
    const tokens = {
      ...TEXT,
      ...{ token_level_generation: true, custom_tokenizer: t.model, max_model_len: 32_768 },
    };
    const { status, result } = await t.process(SIX, tokens);
    expect([status, result.critical_error, result.resolved]).toEqual([200, null, true]);
    const before: number[] = [];
    for (const { role, token_ids = [], input_ids, logprobs } of result.messages) {
      if (role === "assistant") {
        expect(input_ids).toEqual(before);
        expect(logprobs).toHaveLength(token_ids.length);
      } else expect([input_ids, logprobs]).toEqual([null, null]);
      expect(token_ids.length).toBeGreaterThan(0);
      before.push(...token_ids);
    }
    const nowhere = { ...tokens, custom_tokenizer: "nobody/has-this" };
    expect((await t.process(SIX, nowhere)).status).toBe(400);
  });

  test("end a call by cancel, by its time and by stop, each with what there was", async () => {
    await using t = await setup();
    for (const address of t.addresses) await t.post("/add_llm_server", { address });
    await t.post("/start");
    const inRun = async (jobs: number) => {
      await waitFor(async () => (await t.status())[1].active_run === jobs, `${jobs} jobs to run`);
    };
    const cancelled = t.process(SLOW, TEXT, { job_id: "0123456789abcdef_89abcdef" });
    await inRun(1);
    expect(await t.post("/cancel", { job_id: "0123456789abcdef_89abcdef" })).toEqual([
      200,
      { status: "Cancel requested for job 0123456789abcdef_89abcdef", found: true },
    ]);
    expect((await cancelled).result).toMatchObject({
      ...{ cancelled: true, critical_error: "cancelled", resolved: false, filter: true },
      error: expect.stringMatching(/^Cancelled: /),
    });
    const stopped = [t.process(SLOW), t.process(SLOW, TEXT, { job_id: "b" })];
    await inRun(2);
    const other = t.post("/process", { instance: SIX, sampling_params: TEXT, job_id: "b" });
    expect((await other)[0]).toBe(409);
    expect((await t.post("/stop"))[0]).toBe(200);
    for (const call of stopped) {
      const { status, result } = await call;
      expect([status, result.critical_error]).toEqual([200, "cancelled"]);
      // Empty where it was stopped in its first turn.
      expect(["assistant", undefined]).toContain(result.messages.at(-1)?.role);
    }
  });

  test("end a call when its work has taken too long", async () => {
    await using t = await setup(["--prorl-timeout-ms", "9000"]);
    await t.post("/add_llm_server", { address: t.addresses[0] });
    await t.post("/start");
    const { status, result } = await t.process(SLOW);
    expect([status, result.critical_error, result.success]).toEqual([200, "timeout", false]);
    expect(result.error).toMatch(/^Error in .*: Operation timed out$/);
    expect(result.timing.timeout_triggered).toBe(true);
    expect(result.timing.counted_elapsed).toBeGreaterThanOrEqual(8.9);
  });
});

test("upstream's own command line starts it", async () => {
  using dir = tempDir();
  const flags = ["--port", "0", "--max-run-workers", "8", "--timeout", "500"];
  const env = { ROLLOUTD_DATA_DIR: dir.file("data"), ROLLOUTD_DRIVER: "none" };
  await using service = await start(
    ["prorl", ...flags, "--allow-skip-eval", "true", "--use-thread-based-server", "--json"],
    { env },
  );
  const { url } = JSON.parse(service.line);
  expect((await fetch(`${url}/status`)).status).toBe(503);
  const wrong = await run(["prorl", "--timeout", "soon"]);
  expect([wrong.exitCode, wrong.stdout]).toEqual([2, ""]);
});

import { describe, expect, test } from "bun:test";
import { backendKeys } from "../../src/cli/backend-keys.ts";
import { createBackends } from "../../src/cli/backend-service.ts";
import { BackendRegistry } from "../../src/inference/registry.ts";
import { Store } from "../../src/store/store.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { arrival } from "../support/arrival.ts";
import { failureOf } from "../support/failure.ts";
import { tempDir } from "../support/temp-dir.ts";

const NEVER = new AbortController().signal;

/** A service that knows inference servers, and one of those, which serves `models`. */
function setup(models: string[], env: Record<string, string> = {}) {
  const dir = tempDir();
  const store = new Store(dir.path);
  const keys: (string | null)[] = [];
  const engine = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      keys.push(request.headers.get("authorization"));
      return Response.json({ data: models.map((id) => ({ id })) });
    },
  });
  const create = () => {
    const registry = new BackendRegistry();
    const log = createLog("silent");
    return { registry, backends: createBackends(registry, store, { nowMs: () => 1 }, log, env) };
  };
  return {
    ...create(),
    /** As the next start of the service finds it. */
    restarted: create,
    keys,
    env,
    url: `http://127.0.0.1:${engine.port}/v1`,
    async [Symbol.asyncDispose]() {
      await engine.stop(true);
      store[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

describe("an inference server", () => {
  test("is asked for its model when it is added, and is still there after a restart", async () => {
    await using t = setup(["m"]);
    const view = await t.backends.add({ engine: "text", url: `${t.url}//` }, NEVER);
    const id = expect.stringMatching(/^127\.0\.0\.1-\d+-[0-9a-f]{6}$/);
    expect(view).toMatchObject({ id, url: t.url, model: "m", in_flight: 0, model_dir: null });
    expect([t.backends.list(), t.restarted().backends.list()]).toEqual([[view], [view]]);
  });

  test("that is added twice is there once", async () => {
    await using t = setup(["m"]);
    await t.backends.add({ engine: "text", url: t.url }, NEVER);
    await t.backends.add({ engine: "text", url: `${t.url}/` }, NEVER);
    expect(t.restarted().backends.list().length).toBe(1);
  });

  test("is told from one of another address on the same host", async () => {
    await using t = setup(["m"]);
    for (const pool of ["a", "b"])
      await t.backends.add({ engine: "text", url: `${t.url}?pool=${pool}` }, NEVER);
    expect(t.restarted().backends.list().length).toBe(2);
  });

  test.each([
    ["127.0.0.1:8000", "invalid_field", "such as http://127.0.0.1:8000/v1"],
    ["http://127.0.0.1:1/v1", "engine_unreachable", "start the engine first"],
  ])("at %s is refused as %s, with what to do", async (url, code, mend) => {
    await using t = setup(["m"]);
    const failure = await failureOf(() => t.backends.add({ engine: "text", url }, NEVER));
    expect([failure.code, failure.mend]).toEqual([code, expect.stringContaining(mend)]);
  });

  test("whose key is no longer set is left out, and does not keep the service from starting", async () => {
    await using t = setup(["m"], { KEY: "secret" });
    await t.backends.add({ engine: "text", url: t.url, api_key_env: "KEY" }, NEVER);
    expect(t.restarted().backends.list().length).toBe(1);
    delete t.env.KEY;
    expect(t.restarted().backends.list()).toEqual([]);
  });

  test("shows how many trajectories live on it", async () => {
    await using t = setup(["m"]);
    await t.backends.add({ engine: "text", url: t.url }, NEVER);
    t.registry.acquire(arrival());
    expect(t.backends.list()).toMatchObject([{ in_flight: 1 }]);
  });

  test("that is removed is gone, also after a restart; what was never there can't be", async () => {
    await using t = setup(["m"]);
    const { id } = await t.backends.add({ engine: "text", url: t.url }, NEVER);
    expect([t.backends.remove("other", "finish"), t.backends.remove(id, "finish")]).toEqual([
      false,
      true,
    ]);
    expect([t.backends.list(), t.restarted().backends.list()]).toEqual([[], []]);
  });

  test("of several models is not added without a name, and leaves nothing behind", async () => {
    await using t = setup(["m", "n"]);
    const { code, field } = await failureOf(() =>
      t.backends.add({ engine: "text", url: t.url }, NEVER),
    );
    expect([code, field, t.restarted().backends.list()]).toEqual(["invalid_field", "model", []]);
    expect(await t.backends.add({ engine: "text", url: t.url, model: "n" }, NEVER)).toMatchObject({
      model: "n",
    });
  });
});

describe("an inference server's key", () => {
  test("is read from the service's environment, is sent, and is not shown", async () => {
    await using t = setup(["m"], { THE_KEY: "sesame" });
    const view = await t.backends.add(
      { engine: "text", url: t.url, api_key_env: "THE_KEY" },
      NEVER,
    );
    expect(t.keys).toEqual(["Bearer sesame"]);
    expect(JSON.stringify([view, t.backends.list()])).not.toContain("sesame");
    const registries = [t.registry, t.restarted().registry];
    expect(registries.map((registry) => registry.acquire(arrival()).apiKey)).toEqual([
      "sesame",
      "sesame",
    ]);
  });

  test("is one that the operator has named, and never a secret of the service's own", async () => {
    const env = { ROLLOUTD_CALLBACK_SECRET: "a", AWS_SECRET: "b", VLLM_KEY: "c", START_KEY: "d" };
    const backend_key_envs = "VLLM_KEY,ROLLOUTD_CALLBACK_SECRET";
    const keys = backendKeys({ api_key_env: "START_KEY", backend_key_envs }, env);
    expect(keys).toEqual({ VLLM_KEY: "c", START_KEY: "d" });
    await using t = setup(["m"], keys as Record<string, string>);
    for (const api_key_env of [...Object.keys(env).slice(0, 2), "NOT_SET", "toString"]) {
      const add = () => t.backends.add({ engine: "text", url: t.url, api_key_env }, NEVER);
      expect(await failureOf(add)).toMatchObject({
        message: `the variable ${api_key_env} is not set for backends`,
        field: "api_key_env",
      });
    }
    expect(t.keys).toEqual([]);
  });

  test("whose variable is not set is refused before anything is sent", async () => {
    await using t = setup(["m"]);
    const add = () => t.backends.add({ engine: "text", url: t.url, api_key_env: "THE_KEY" }, NEVER);
    expect(await failureOf(add)).toEqual({
      code: "invalid_field",
      message: "the variable THE_KEY is not set for backends",
      boundary: "client",
      retryable: false,
      field: "api_key_env",
      mend: "start rolloutd serve with THE_KEY in its environment and in --backend-key-envs",
    });
    expect(t.keys).toEqual([]);
  });
});

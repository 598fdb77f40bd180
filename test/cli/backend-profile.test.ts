import { expect, test } from "bun:test";
import { createBackends } from "../../src/cli/backend-service.ts";
import { BackendRegistry } from "../../src/inference/registry.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { BackendView } from "../../src/server/parts.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { Store } from "../../src/store/store.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { arrival } from "../support/arrival.ts";
import { tempDir } from "../support/temp-dir.ts";

function open(dataDir: string) {
  const store = new Store(dataDir);
  const registry = new BackendRegistry();
  const backends = createBackends(registry, store, systemClock(), createLog("silent"), {});
  return { store, registry, backends, [Symbol.dispose]: () => store[Symbol.dispose]() };
}

const signal = () => new AbortController().signal;

test("what a probe found is shown, given to workers, and kept over a restart", async () => {
  using dir = tempDir();
  await using simulator = await startSimulator({ policy: { kind: "echo" }, wire: "sglang" });
  let added: BackendView | undefined;
  {
    using service = open(dir.path);
    added = await service.backends.add({ url: simulator.url }, signal());
    expect(added).toMatchObject({
      model: "simulated",
      engine: { kind: "sglang", rung: "sglang_generate", max_model_len: 131_072 },
    });
    expect(service.registry.acquire(arrival()).profile).toEqual(added.engine ?? undefined);
  }
  using service = open(dir.path);
  expect(service.backends.list()).toMatchObject([added]);
});

test("adding a backend again probes it again", async () => {
  using dir = tempDir();
  await using simulator = await startSimulator({ policy: { kind: "echo" } });
  using service = open(dir.path);
  await service.backends.add({ url: simulator.url }, signal());
  await service.backends.add({ url: simulator.url, engine: "text" }, signal());
  expect(service.backends.list()).toMatchObject([{ engine: { rung: "chat" } }]);
});

test("a backend from before probes looked is shown as that, and only chats", () => {
  using dir = tempDir();
  {
    using service = open(dir.path);
    const row = {
      id: "old",
      url: "http://h/v1",
      model: "m",
      api_key_env: null,
      profile: null,
      model_dir: null,
      leaving: null,
      routed: 0,
    };
    service.store.transaction(() => service.store.backends.save({ ...row, added_ms: 0 }));
  }
  using service = open(dir.path);
  expect(service.backends.list()).toMatchObject([
    {
      id: "old",
      url: "http://h/v1",
      model: "m",
      in_flight: 0,
      engine: null,
      model_dir: null,
    },
  ]);
  expect(service.registry.acquire(arrival())).not.toHaveProperty("profile");
});

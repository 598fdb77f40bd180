import { expect, test } from "bun:test";
import { createBackends } from "../../src/cli/backend-service.ts";
import { prorlAddresses } from "../../src/cli/prorl-addresses.ts";
import { openAiChat } from "../../src/inference/openai-chat.ts";
import { BackendRegistry } from "../../src/inference/registry.ts";
import { NETWORKS, type Network } from "../../src/lib/network.ts";
import { Store } from "../../src/store/store.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { arrival } from "../support/arrival.ts";
import { failureOf } from "../support/failure.ts";
import { jsonServer } from "../support/json-server.ts";
import { tempDir } from "../support/temp-dir.ts";

const METADATA = ["http://169.254.169.254/v1", "http://[::ffff:169.254.169.254]/v1"];

test.each<[readonly Network[], string]>([
  ...METADATA.map((url): [readonly Network[], string] => [NETWORKS, url]),
  [["private"], "http://127.0.0.1:1/v1"],
  [["loopback"], "http://8.8.8.8/v1"],
  [NETWORKS, "http://nobody.invalid/v1"],
])(
  "with %p, an inference server at %s is refused whichever way it is added",
  async (networks, url) => {
    using dir = tempDir();
    using store = new Store(dir.path);
    const registry = new BackendRegistry();
    const clock = { nowMs: () => 1 };
    const log = createLog("silent");
    const backends = createBackends(registry, store, clock, log, {}, () => {}, networks);
    const addresses = prorlAddresses(registry, store, clock, () => {}, networks);
    const never = new AbortController().signal;
    for (const add of [() => backends.add({ url }, never), () => addresses.add(url)]) {
      expect((await failureOf(async () => void (await add()))).code).toBe("address_forbidden");
    }
    expect(registry.list()).toEqual([]);
  },
);

test("an address of ProRL's clients carries no credentials, and there are not endlessly many", async () => {
  using dir = tempDir();
  using store = new Store(dir.path);
  const addresses = prorlAddresses(new BackendRegistry(), store, { nowMs: () => 1 }, () => {});
  const refused = await failureOf(() => addresses.add("http://user:secret@127.0.0.1:1"));
  expect([refused.code, JSON.stringify(refused).includes("secret")]).toEqual([
    "invalid_field",
    false,
  ]);
  for (let i = 0; i < 1000; i++) await addresses.add(`http://127.0.0.1:1/${i}`);
  expect((await failureOf(() => addresses.add("http://127.0.0.1:1/more"))).field).toBe("address");
});

test("a name that leads elsewhere by now is not called, whatever it was when the server was added", async () => {
  using engine = jsonServer(() => ({ data: [{ id: "m" }] }));
  const url = `${engine.url.replace("127.0.0.1", "localhost")}/v1`;
  using dir = tempDir();
  using store = new Store(dir.path);
  const log = createLog("silent");
  const never = new AbortController().signal;
  const start = (networks: Network[]) => {
    const registry = new BackendRegistry();
    const backends = createBackends(
      ...([registry, store, { nowMs: () => 1 }, log, {}, () => {}, networks] as const),
    );
    return { registry, backends };
  };
  await start(["loopback"]).backends.add({ url, engine: "text" }, never);
  const asked = engine.asked.length;
  expect(asked).toBeGreaterThan(0);
  // The name's own answer can't be changed here, so what may be called is.
  const backend = start(["private"]).registry.acquire(arrival());
  using client = openAiChat();
  const call = { sessionId: "s", requestId: "r", timeoutMs: 5000, maxReplyBytes: 1000 };
  const request = { ...call, messages: [], tools: [], sampling: {} };
  const { code, message } = await failureOf(() => client.chat(backend, request, never));
  expect([code, engine.asked.length]).toEqual(["engine_unreachable", asked]);
  expect(message).toEndWith("which is in no allowed network");
});

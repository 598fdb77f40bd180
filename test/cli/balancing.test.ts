import { expect, test } from "bun:test";
import { startBalancing } from "../../src/cli/balancing.ts";
import { loadConfig } from "../../src/config/config.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { Store } from "../../src/store/store.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

test("a backend's memory is known as soon as it is added, and after a restart", async () => {
  using dir = tempDir();
  await using engine = await startSimulator({ policy: { kind: "echo" }, wire: "vllm" });
  using store = new Store(dir.path);
  const log = createLog("silent");
  const start = () => {
    const config = loadConfig({ env: {}, flags: { load_poll_ms: 3_600_000 } });
    return startBalancing(config, { store, clock: systemClock(), log });
  };
  const isKnown = ({ desk }: ReturnType<typeof start>) =>
    waitFor(() => desk.registry.list()[0]?.kvTokens, "its memory");
  const first = start();
  await first.backends.add({ url: engine.url, engine: "auto" }, AbortSignal.timeout(10_000));
  expect(await isKnown(first)).toBeGreaterThan(0);
  first.stop();
  const second = start();
  expect(await isKnown(second)).toBeGreaterThan(0);
  second.stop();
});

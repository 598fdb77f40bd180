import type { RolloutView } from "../src/protocol/view.ts";
import type { Trajectory } from "../src/trajectory/record.ts";
import { mathRow, sandboxFlags, serve, simulate } from "../test/support/binary.ts";
import { tempDir } from "../test/support/temp-dir.ts";

/** Where token ids come from: text mode has none, a model's folder, or the engine's own routes. */
export type TokenSource = "none" | "folder" | "engine";

/** The compiled service with real sandboxes, and the simulated engine replaying `turns` without delay. */
export async function startRollouts(turns: unknown[], tokens: TokenSource = "engine") {
  const scratch = tempDir();
  const folder = ["--model-dir", scratch.file("model")];
  const engine = await simulate(scratch.path, [{ match: "bench", variants: [turns] }], folder);
  const source = { none: ["--engine", "text"], folder, engine: [] }[tokens];
  const flags = [...sandboxFlags(), "--backend", engine.url, ...source];
  const service = await serve(scratch.file("data"), flags);
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const init =
      body === undefined
        ? {}
        : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const url = `http://localhost${path}`;
    const response = await fetch(url, { method, unix: service.socket, ...init });
    if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
    return (await response.json()) as T;
  };
  return {
    submit: (id: string, tools: string[], waitMs = 0) =>
      call<RolloutView>("POST", `/v1/rollouts?wait_ms=${waitMs}`, {
        id,
        instance: mathRow("bench", "1"),
        agent: { tools, max_turns: 1000 },
      }),
    rollout: (id: string) => call<RolloutView>("GET", `/v1/rollouts/${id}`),
    trajectory: (id: string) => call<Trajectory>("GET", `/v1/rollouts/${id}/trajectory`),
    cancel: (id: string) => call<RolloutView>("DELETE", `/v1/rollouts/${id}?wait_ms=30000`),
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
      scratch[Symbol.dispose]();
    },
  };
}

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { RolloutView } from "../src/protocol/view.ts";
import type { Trajectory } from "../src/trajectory/record.ts";
import { environment, startBinary, startEngine } from "./service.ts";

export type PolicyTurn = { tool_calls: { name: string; arguments: Record<string, unknown> }[] };

/** The service with real sandboxes, and the simulated engine replaying `turns` without any delay. */
export async function startRollouts(turns: PolicyTurn[]) {
  const scratch = mkdtempSync("/var/tmp/rb-policy-");
  const policy = join(scratch, "policy.jsonl");
  await Bun.write(policy, `${JSON.stringify({ match: "bench", variants: [turns] })}\n`);
  const engine = await startEngine(["--policy", policy]);
  const service = await startBinary([
    ...["--image", environment("ROLLOUTD_IMAGE"), "--apptainer", environment("ROLLOUTD_APPTAINER")],
    ...["--backend", engine.url],
  ]);
  const call = async (method: string, path: string, body?: unknown) => {
    const init = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(`http://localhost${path}`, {
      method,
      unix: service.socket,
      ...init,
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
    return response.json();
  };
  return {
    submit: (id: string, tools: string[], waitMs = 0): Promise<RolloutView> =>
      call("POST", `/v1/rollouts?wait_ms=${waitMs}`, {
        id,
        instance: {
          data_source: "math",
          prompt: [{ content: "bench" }],
          reward_model: { ground_truth: "1" },
        },
        agent: { tools, max_turns: 1000 },
      }) as Promise<RolloutView>,
    rollout: (id: string) => call("GET", `/v1/rollouts/${id}`) as Promise<RolloutView>,
    trajectory: (id: string) => call("GET", `/v1/rollouts/${id}/trajectory`) as Promise<Trajectory>,
    cancel: (id: string) =>
      call("DELETE", `/v1/rollouts/${id}?wait_ms=30000`) as Promise<RolloutView>,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

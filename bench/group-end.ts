import type { GroupView } from "../src/protocol/group-view.ts";
import { environment, sandboxFlags, serve, simulate, turn } from "../test/support/binary.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { percentile, print } from "./line.ts";

const ROLLOUTS = 64;
const TARGET_MS = 100;
const HOUR_MS = 3_600_000;

/** Half of the rollouts sit in a shell command and half in a call of the model, as seeds choose. */
const VARIANTS = [
  [turn("execute_bash", { command: "sleep 1000" })],
  [{ content: "", delay_ms: HOUR_MS }],
];

/** Time for the shells to have begun their commands after all rollouts are seen to run. */
const SETTLE_MS = 1000;

/**
 * A group that is not needed any more, from the request to the freed slot of each of its rollouts: a row is final
 * only when the sandbox is gone. The way is the same for every reason for which a group is ended.
 */
export async function groupEnd(): Promise<void> {
  using scratch = tempDir();
  await using engine = await simulate(scratch.path, [{ match: "bench", variants: VARIANTS }]);
  const driver = ["--driver", "bubblewrap", "--bwrap", environment("ROLLOUTD_BWRAP")];
  const flags = [...sandboxFlags(), ...driver, "--backend", engine.url];
  await using service = await serve(scratch.file("data"), flags);
  const call = async (method: string, path: string, body?: unknown): Promise<GroupView> => {
    const init = body === undefined ? {} : { body: JSON.stringify(body) };
    const url = `http://localhost${path}`;
    const response = await fetch(url, { method, unix: service.socket, ...init });
    if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
    return (await response.json()) as GroupView;
  };
  await call("POST", "/v1/groups", {
    ...{ id: "g", num_samples: ROLLOUTS, sampling: { seed: 0 } },
    instance: {
      data_source: "codeforces",
      prompt: [{ role: "user", content: "bench" }],
      reward_model: { ground_truth: JSON.stringify({ inputs: ["1"], outputs: ["1"] }) },
    },
  });
  for (let running = 0; running < ROLLOUTS; ) {
    await Bun.sleep(100);
    const { members, error } = await call("GET", "/v1/groups/g");
    if (error) throw new Error(error.message);
    running = members.filter(({ rollout }) => rollout?.stage === "run").length;
  }
  await Bun.sleep(SETTLE_MS);
  const startMs = Date.now();
  const { members } = await call("DELETE", "/v1/groups/g?wait_ms=60000");
  const times = members.map(({ rollout }) => Date.parse(rollout?.finished_at ?? "") - startMs);
  const p50 = percentile(times, 0.5);
  print({
    bench: "group-end",
    case: "end of a group to freed slot, in shell commands and calls of the model",
    n: times.length,
    p50,
    p99: percentile(times, 0.99),
    unit: "ms",
    target: `p50 under ${TARGET_MS} ms`,
    met: p50 < TARGET_MS,
  });
}

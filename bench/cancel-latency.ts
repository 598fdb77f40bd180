import { turn } from "../test/support/binary.ts";
import { percentile, print } from "./line.ts";
import { startRollouts } from "./rollouts.ts";

const ROUNDS = 6;
const JOBS_A_ROUND = 6;
const TARGET_MS = 50;

/** Time for the shell to have begun the command after the job is seen to run. */
const SETTLE_MS = 500;

/** From DELETE to the final row, which is written only when the sandbox is gone and the slot is free. */
export async function cancelLatency(): Promise<void> {
  await using rollouts = await startRollouts([turn("execute_bash", { command: "sleep 1000" })]);
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const ids = Array.from({ length: JOBS_A_ROUND }, (_, index) => `c${round}-${index}`);
    for (const id of ids) await rollouts.submit(id, ["execute_bash"]);
    for (const id of ids) await running(rollouts, id);
    await Bun.sleep(SETTLE_MS);
    for (const id of ids) {
      const startMs = performance.now();
      const { state } = await rollouts.cancel(id);
      if (state !== "cancelled") throw new Error(`${id} is ${state}`);
      times.push(performance.now() - startMs);
    }
  }
  const p50 = percentile(times, 0.5);
  print({
    bench: "cancel-latency",
    case: "DELETE to freed slot, in a shell command",
    n: times.length,
    p50,
    p99: percentile(times, 0.99),
    unit: "ms",
    target: `p50 under ${TARGET_MS} ms`,
    met: p50 < TARGET_MS,
  });
}

async function running(
  rollouts: { rollout(id: string): Promise<{ stage: string; state: string }> },
  id: string,
): Promise<void> {
  for (;;) {
    const { stage, state } = await rollouts.rollout(id);
    if (stage === "run" && state === "active") return;
    if (state !== "pending" && state !== "active") throw new Error(`${id} is ${state} in ${stage}`);
    await Bun.sleep(20);
  }
}

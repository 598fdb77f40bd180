import { ServiceError } from "../../errors.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { putFolder, readText, SHORT } from "./folders.ts";
import { MAIN, pytestResults, type Rewards, rewardsOfJson, rewardsOfText } from "./rewards.ts";
import type { HarborInstance, HarborStep } from "./row.ts";

const MAX_LOG_BYTES = 1 << 20;
const MAX_REWARD_BYTES = 64 * 1024;
const MAX_SHOWN = 500;
/** In the order in which Harbor asks for them. */
const REWARDS = [
  { path: "/logs/verifier/reward.json", read: rewardsOfJson },
  { path: "/logs/verifier/reward.txt", read: rewardsOfText },
];

export type Verified = { rewards: Rewards; log: string };

/**
 * Runs a step's tests in the sandbox as it is, and reads the rewards that they give.
 *
 * @param env variables of the verifier, with the service's values filled in
 * @throws ServiceError `verifier_failed`
 */
export async function verifyStep(
  { tests, verifierTimeoutMs: timeoutMs }: HarborStep,
  { workdir, form }: HarborInstance,
  env: Record<string, string>,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<Verified> {
  // What lies there already was not written by the verifier.
  await putFolder(sandbox, "/logs/verifier", {}, signal);
  await putFolder(sandbox, "/tests", tests, signal);
  const program = form === "harbor" ? "/tests/test.sh" : "bash /tests/run-tests.sh";
  const script = `exec 2>&1\nchmod -R a+rx /tests\ncd "$1" 2>/dev/null || cd /\n${program}`;
  const run = await sandbox.exec(["bash", "-c", script, "test", workdir], {
    ...{ cwd: "/", env, timeoutMs, maxOutputBytes: MAX_LOG_BYTES, signal },
  });
  const log = run.stdout;
  const tail = JSON.stringify(log.slice(-MAX_SHOWN));
  if (run.timedOut)
    throw failed(`the tests took longer than ${timeoutMs} ms; they printed ${tail}`);
  if (form !== "harbor") return { rewards: rewardsOfResults(log, tail), log };
  for (const { path, read } of REWARDS) {
    const text = await readText(sandbox, path, MAX_REWARD_BYTES, signal);
    if (text === null) continue;
    const rewards = read(text);
    if (rewards !== null) return { rewards, log };
    const shown = JSON.stringify(text.slice(0, 100));
    throw failed(`${path} holds ${shown}, which is no reward from 0 to 1`);
  }
  throw failed(`test.sh ended with ${run.exitCode} and wrote no reward; it printed ${tail}`);
}

/** Terminal-Bench 1: all tests pass, or the task is not done. */
function rewardsOfResults(log: string, tail: string): Rewards {
  const results = pytestResults(log);
  if (results === null) throw failed(`run-tests.sh printed no summary of pytest, but ${tail}`);
  const passed = Object.values(results).every((result) => result === "passed");
  return { [MAIN]: passed ? 1 : 0 };
}

/** What the agent left running could wait for the verifier; PID 1 and the asker stay. */
export async function endProcesses(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  await sandbox.exec(["bash", "-c", "kill -9 -1"], { ...SHORT, signal });
}

function failed(why: string): ServiceError {
  return new ServiceError("verifier_failed", `the task's verifier gave no reward: ${why}`);
}

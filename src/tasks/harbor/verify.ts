import { ServiceError } from "../../errors.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Verdict } from "../../verifiers/verdict.ts";
import type { EvalContext } from "../task-kind.ts";
import { usedOf, workLimit } from "../work-limit.ts";
import type { HarborInstance } from "./row.ts";

const SHORT = { timeoutMs: 30_000, maxOutputBytes: 10_000 };
const TREE = { maxBytes: 256 << 20, maxEntries: 20_000 };
const MAX_LOG_BYTES = 1 << 20;
const MAX_REWARD_BYTES = 64 * 1024;
const MAX_SHOWN = 500;
const REWARDS = ["/logs/verifier/reward.txt", "/logs/verifier/reward.json"];

/** Puts a folder's files in place of what is there. */
export async function putFolder(
  sandbox: Sandbox,
  folder: string,
  files: Record<string, string>,
  signal: AbortSignal,
): Promise<void> {
  const clear = `chmod -R u+rwX ${folder} 2>/dev/null; rm -rf ${folder} 2>/dev/null || find ${folder} -mindepth 1 -delete 2>/dev/null; mkdir -p ${folder}`;
  await sandbox.exec(["bash", "-c", clear], { ...SHORT, signal });
  const decoded = Object.entries(files).map(([path, base64]) => [
    path,
    Buffer.from(base64, "base64"),
  ]);
  await sandbox.writeTree(folder, { files: Object.fromEntries(decoded) }, TREE, signal);
}

/** Runs `tests/test.sh` and reads the reward that it writes. @throws ServiceError `verifier_failed` */
export async function verify(
  instance: HarborInstance,
  sandbox: Sandbox,
  context: Pick<EvalContext, "limitMs" | "untilMs" | "signal">,
): Promise<Verdict> {
  const { signal } = context;
  const { tests, workdir, env, verifierTimeoutMs } = instance;
  // What lies there already was not written by the verifier.
  await putFolder(sandbox, "/logs/verifier", {}, signal);
  await putFolder(sandbox, "/tests", tests, signal);
  const script = `exec 2>&1\nchmod +x /tests/test.sh\ncd "$1" 2>/dev/null || cd /\nexec bash /tests/test.sh`;
  const limit = workLimit(verifierTimeoutMs, context);
  const run = await sandbox.exec(["bash", "-c", script, "test", workdir], {
    ...{ cwd: "/", env, ...limit, maxOutputBytes: MAX_LOG_BYTES, signal },
  });
  const tail = JSON.stringify(run.stdout.slice(-MAX_SHOWN));
  if (run.timedOut) {
    const reason = `test.sh took longer than ${Math.round(limit.timeoutMs)} ms of its own time.`;
    const details = { log: tail, ...usedOf(run.times) };
    return { reward: 0, rule: "verifier_timeout", reason, details };
  }
  for (const path of REWARDS) {
    const text = await readText(sandbox, path, signal);
    if (text === null) continue;
    const reward = path.endsWith(".json") ? rewardOfJson(text) : Number(text.trim() || Number.NaN);
    if (!(reward >= 0 && reward <= 1)) {
      throw failed(`${path} holds ${JSON.stringify(text.slice(0, 100))}, which is no reward`);
    }
    const reason = `The task's test.sh gave ${reward}.`;
    return { reward, rule: "harbor_reward", reason, details: usedOf(run.times) };
  }
  throw failed(`test.sh ended with ${run.exitCode} and wrote no reward; it printed ${tail}`);
}

/** `{"reward": 0.5}`, or an object with one number. */
function rewardOfJson(text: string): number {
  try {
    const value = JSON.parse(text) as Record<string, unknown>;
    const numbers = Object.values(value).filter((entry) => typeof entry === "number");
    const [only = Number.NaN] = numbers.length === 1 ? numbers : [];
    return typeof value.reward === "number" ? value.reward : only;
  } catch {
    return Number.NaN;
  }
}

async function readText(
  sandbox: Sandbox,
  path: string,
  signal: AbortSignal,
): Promise<string | null> {
  try {
    return Buffer.from(await sandbox.readFile(path, MAX_REWARD_BYTES, signal)).toString();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Error && error.name === "FileError") return null;
    throw error;
  }
}

function failed(why: string): ServiceError {
  return new ServiceError("verifier_failed", `the task's verifier gave no reward: ${why}`);
}

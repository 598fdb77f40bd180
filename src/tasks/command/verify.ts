import { ServiceError } from "../../errors.ts";
import { shellWord } from "../../lib/shell-word.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Verdict } from "../../verifiers/verdict.ts";
import type { EvalContext } from "../task-kind.ts";
import { usedOf, workLimit } from "../work-limit.ts";
import type { CommandInstance } from "./row.ts";

const MAX_LOG_BYTES = 64 * 1024 * 1024;
const MAX_REWARD_BYTES = 64 * 1024;
const MAX_SHOWN = 1000;
/** As bash says them: not to be run, not found. */
const NOT_RUN = [126, 127];

/** @throws ServiceError `verifier_failed` where the command does not come to a number */
export async function verify(
  { verifier, workdir }: CommandInstance,
  sandbox: Sandbox,
  context: Pick<EvalContext, "limitMs" | "untilMs" | "signal">,
): Promise<Verdict> {
  const { signal } = context;
  const { command, files, reward: from, reward_file, timeout_ms } = verifier;
  for (const [path, text] of Object.entries(files)) {
    await sandbox.writeFile(path, text, 0o644, signal);
  }
  // What lies there already was not written by the verifier.
  const script = reward_file ? `rm -rf -- ${shellWord(reward_file)}\n${command}` : command;
  // Of a name that nobody can have taken before.
  const logFile = `/tmp/verifier-${crypto.randomUUID()}.log`;
  const limit = workLimit(timeout_ms, context);
  const run = await sandbox.run(script, { log: logFile, cwd: workdir, ...limit, signal });
  const log = Buffer.from(await readLog(sandbox, logFile, signal)).toString();
  const details = { exit_code: run.exitCode, log: log.slice(-MAX_SHOWN), ...usedOf(run.times) };
  if (run.timedOut) {
    const long = `longer than ${Math.round(limit.timeoutMs)} ms of its own time`;
    if (!verifier.timeout_is_zero) throw failed(`it took ${long}`, log);
    const reason = `The verifier took ${long}.`;
    return { reward: 0, rule: "verifier_timeout", reason, details };
  }
  if (run.exitCode !== null && NOT_RUN.includes(run.exitCode)) throw failed("it can't run", log);
  if (from === "exit_code") {
    if (run.exitCode === null) throw failed(`signal ${run.signal} ended it`, log);
    const passed = run.exitCode === 0;
    const reason = `The verifier ended with exit code ${run.exitCode}.`;
    return { reward: passed ? 1 : 0, rule: passed ? "exit_zero" : "exit_nonzero", reason, details };
  }
  const text = from === "file" ? await readReward(sandbox, reward_file ?? "", log, signal) : log;
  const trimmed = text.trimEnd();
  const last = trimmed.slice(trimmed.lastIndexOf("\n") + 1).trim();
  const reward = numberOf(from === "file" ? text.trim() : last);
  if (reward === null) throw failed(`it gave no number but "${last.slice(0, 200)}"`, log);
  return { reward, rule: `command_${from}`, reason: `The verifier gave ${reward}.`, details };
}

async function readLog(sandbox: Sandbox, path: string, signal: AbortSignal): Promise<Uint8Array> {
  try {
    return await sandbox.readFile(path, MAX_LOG_BYTES, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw failed(`its output can't be read (${(error as Error).message})`, "");
  }
}

async function readReward(
  sandbox: Sandbox,
  path: string,
  log: string,
  signal: AbortSignal,
): Promise<string> {
  try {
    return Buffer.from(await sandbox.readFile(path, MAX_REWARD_BYTES, signal)).toString();
  } catch (error) {
    signal.throwIfAborted();
    throw failed(`it left no reward (${(error as Error).message})`, log);
  }
}

/** A number, or JSON with a `reward`. */
function numberOf(text: string): number | null {
  if (/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text)) return Number(text);
  try {
    const { reward } = JSON.parse(text) as { reward?: unknown };
    return typeof reward === "number" ? reward : null;
  } catch {
    return null;
  }
}

function failed(why: string, log: string): ServiceError {
  const end = log.slice(-MAX_SHOWN);
  return new ServiceError(
    "verifier_failed",
    `the verifier's command failed: ${why}\n${end}`.trim(),
  );
}

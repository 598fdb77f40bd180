import { ServiceError } from "../../errors.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { putFolder } from "./folders.ts";
import type { HarborStep } from "./row.ts";

const MAX_MS = 24 * 3_600_000;

/**
 * Runs a step's own solution in the agent's place, within the agent's time, as Harbor's oracle does. What it prints
 * is in `/logs/agent/oracle.txt`; an exit code says nothing, because the tests decide.
 *
 * @throws ServiceError `instance_invalid` where it takes too long
 */
export async function runSolution(
  { solution, agentTimeoutMs }: HarborStep,
  script: string,
  workdir: string,
  env: Record<string, string>,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<void> {
  await putFolder(sandbox, "/solution", solution ?? {}, signal);
  const timeoutMs = agentTimeoutMs ?? MAX_MS;
  const command = `chmod -R a+rx /solution; cd "$1" && (/solution/${script}) >/logs/agent/oracle.txt 2>&1`;
  const run = await sandbox.exec(["bash", "-c", command, "solve", workdir], {
    ...{ cwd: "/", timeoutMs, maxOutputBytes: 10_000, signal },
    env: { DEBIAN_FRONTEND: "noninteractive", ...env },
  });
  if (!run.timedOut) return;
  const message = `the task's ${script} took longer than the ${timeoutMs} ms that its agent has`;
  throw new ServiceError("instance_invalid", message);
}

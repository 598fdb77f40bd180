import { ServiceError } from "../../errors.ts";
import { pause } from "../../lib/abortable.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { addFolder, putFolder, SHORT } from "./folders.ts";
import type { HarborStep } from "./row.ts";
import type { Healthcheck } from "./task-toml.ts";

const SETUP_MS = 600_000;
const MAX_SHOWN = 500;

/**
 * Makes the sandbox ready for a step: no tests and logs of the step before, its files in the working folder, its
 * `setup.sh` run, its health checked.
 *
 * @throws ServiceError `instance_invalid`
 */
export async function prepareStep(
  { name, workdir: files, healthcheck }: HarborStep,
  workdir: string,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<void> {
  for (const folder of ["/tests", "/logs/verifier", "/logs/agent"]) {
    await putFolder(sandbox, folder, {}, signal);
  }
  await addFolder(sandbox, workdir, files, signal);
  if (files["setup.sh"]) {
    const options = { cwd: workdir, timeoutMs: SETUP_MS, maxOutputBytes: 10_000, signal };
    const { exitCode, stdout, stderr } = await sandbox.exec(["bash", "setup.sh"], options);
    if (exitCode !== 0) {
      const output = `${stdout}${stderr}`.slice(-MAX_SHOWN);
      const message = `setup.sh of step "${name}" ended with ${exitCode}: ${output}`;
      throw new ServiceError("instance_invalid", message);
    }
  }
  if (healthcheck) await waitForHealth(healthcheck, workdir, sandbox, signal);
}

/** As Docker's HEALTHCHECK: failures in the start period do not count. @throws ServiceError `instance_invalid` */
export async function waitForHealth(
  check: Healthcheck,
  workdir: string,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<void> {
  const startMs = performance.now();
  for (let failures = 0; ; ) {
    const starting = performance.now() - startMs < check.start_period_sec * 1000;
    const options = { ...SHORT, cwd: workdir, timeoutMs: check.timeout_sec * 1000, signal };
    const { exitCode } = await sandbox.exec(["bash", "-c", check.command], options);
    if (exitCode === 0) return;
    if (!starting && ++failures >= check.retries) {
      const message = `the task's healthcheck failed ${failures} times: ${check.command}`;
      throw new ServiceError("instance_invalid", message);
    }
    await pause((starting ? check.start_interval_sec : check.interval_sec) * 1000, signal);
  }
}

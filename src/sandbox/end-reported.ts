import type { Log } from "../telemetry/log.ts";
import { endSandbox } from "./end.ts";
import type { SandboxHandle } from "./sandbox.ts";

/** Ends a sandbox at once. Does not fail: what could not be killed or deleted is told to the operator. */
export async function endReported(handle: SandboxHandle, log: Log): Promise<void> {
  const { id } = handle;
  try {
    const { clean, survivors, removed } = await endSandbox(handle);
    if (!clean) log.error("a sandbox left processes behind", { sandbox: id, survivors });
    removed.catch((error) => {
      log.error("a sandbox's files could not be deleted", { sandbox: id, why: String(error) });
    });
  } catch (error) {
    log.error("a sandbox could not be cleaned up", { sandbox: id, why: String(error) });
  }
}

import { ServiceError } from "../errors.ts";
import { namespaceOf, privilegesOf } from "../lib/proc.ts";
import type { IsolationLevel } from "./sandbox.ts";

const NAMESPACES = ["user", "pid", "ipc", "uts", "mnt", "net"] as const;

/**
 * Compares PID 1 with ourselves, so that the level in a result is what the kernel did and not what a command
 * line asked for. All commands inherit from PID 1, and nothing of it can be taken back.
 * @throws ServiceError `sandbox_unavailable`, which names the missing parts.
 */
export function verifyIsolation(holderPid: number, level: IsolationLevel): void {
  const needed = NAMESPACES.filter((name) => name !== "net" || level === "A");
  const missing = needed
    .filter((name) => {
      const theirs = namespaceOf(holderPid, name);
      return theirs === null || theirs === namespaceOf("self", name);
    })
    .map((name) => `a ${name} namespace of its own`);
  const { capabilities, noNewPrivileges, filtered } = privilegesOf(holderPid);
  if (capabilities) missing.push("freedom from capabilities");
  if (!noNewPrivileges) missing.push("no_new_privs");
  if (!filtered) missing.push("a system call filter");
  if (missing.length === 0) return;
  throw new ServiceError("sandbox_unavailable", `the sandbox lacks ${missing.join(", ")}`, {
    mend: "Use another driver or a newer program for it; `rolloutd doctor` says what the node can do.",
  });
}

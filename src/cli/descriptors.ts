import type { Config } from "../config/settings.ts";
import type { Finding } from "./finding.ts";

/** Its socket, in two copies while a thread works in it, its image's lock, and the calls of its model and tools. */
const OF_A_SANDBOX = 6;
/** Threads, database, sockets, log; clients come on top. */
const OF_THE_SERVICE = 100;

type Slots = Pick<
  Config,
  "init_slots" | "run_slots" | "eval_slots" | "max_sandboxes_ahead" | "warm_sandboxes"
>;

/**
 * Whether the slots can all be used at once: without descriptors starts and calls of models fail, or wait for each other.
 * @param limits as /proc/self/limits has them
 */
export function descriptors(config: Slots, limits: string): Finding {
  const check = "descriptors";
  const { init_slots, run_slots, eval_slots, max_sandboxes_ahead, warm_sandboxes } = config;
  const sandboxes = init_slots + run_slots + eval_slots + max_sandboxes_ahead + warm_sandboxes;
  const needed = OF_THE_SERVICE + OF_A_SANDBOX * sandboxes;
  const allowed = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
  const detail = `a process may have ${allowed}; the slots may take ${needed}`;
  if (allowed >= needed) return { check, status: "ok", detail };
  const mend = `raise the limit before the start (ulimit -Hn ${needed}), or lower run_slots, init_slots and eval_slots`;
  return { check, status: "note", detail, mend };
}

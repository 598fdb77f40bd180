import type { Stage } from "../jobs/job.ts";
import type { WorkerSettings } from "../pipeline/messages.ts";
import type { WorkerThread } from "../pipeline/pool.ts";

/** What only the entry file can give: a compiled binary spawns workers from nowhere else. */
export type CliContext = {
  spawnWorker(stage: Stage, settings: WorkerSettings): WorkerThread;
};

/** One subcommand. `run` returns the exit code, one of `EXIT`. */
export type Command = {
  name: string;
  summary: string;
  help: string;
  run(argv: string[], context: CliContext): Promise<number>;
};

/** `failed`: the work; `usage`: how it was asked for. As sysexits.h has them, from 64 on. */
export const EXIT = {
  ...{ done: 0, failed: 1, usage: 2, unreachable: 69, bug: 70 },
  /** The database is damaged. */
  damaged: 74,
  /** The service stopped with work that its next start goes on with. */
  cut: 75,
  /** Ctrl-C, and SIGTERM, ended a command before its work was done. */
  interrupted: 130,
  terminated: 143,
} as const;

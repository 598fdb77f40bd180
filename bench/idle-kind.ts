import { NO_SANDBOX } from "../src/tasks/sandbox-plan.ts";
import type { TaskKind } from "../src/tasks/task-kind.ts";
import type { Outcome } from "../src/trajectory/record.ts";

/** Holds INIT until it is ended, so that what waits behind it waits, and only the API is measured. */
const idle: TaskKind<Record<string, unknown>> = {
  name: "idle",
  dataSources: ["idle"],
  needsBackend: false,
  tools: [],
  parse: (row) => row,
  sandboxes: () => NO_SANDBOX,
  init: (_row, _sandbox, signal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    }),
  run: async (): Promise<Outcome> => ({ stop_reason: "done", final_message: null, turns: 0 }),
  evaluate: async () => ({ reward: 1, rule: "idle", reason: "It is never scored." }),
};

export const taskKinds = [idle];

/**
 * A task kind whose RUN does what no RUN should, loaded into the compiled binary by `--tasks`. A row names what
 * happens (`how`), how often (`times`), and a file that gets a line for each time it is run (`marker`).
 */
import { appendFileSync, readFileSync } from "node:fs";
import type { TaskKind } from "../../src/tasks/task-kind.ts";

type Instance = { how: keyof typeof HOW; times: number; marker: string };

const HOW = {
  /** The thread's event loop is stuck. */
  spin: () => {
    for (;;);
  },
  /** The thread dies of an error that nobody catches. */
  throw: () => {
    setTimeout(() => {
      throw new Error("nobody catches this");
    });
    return new Promise(() => {});
  },
  exit: () => process.exit(3),
  /** The whole service dies. */
  kill: () => process.kill(process.pid, "SIGKILL"),
};

const broken: TaskKind<Instance> = {
  name: "broken",
  dataSources: ["broken"],
  needsBackend: false,
  tools: [],
  parse: (row) => row as Instance,
  sandboxes: () => ({ agent: false, evaluation: "none", image: null }),
  init: async () => {},
  async run({ how, times, marker }) {
    appendFileSync(marker, "run\n");
    if (readFileSync(marker, "utf8").length / 4 <= times) await HOW[how]();
    return { stop_reason: "done", final_message: null, turns: 0 };
  },
  evaluate: async () => ({ reward: 1, rule: "broken", reason: "It came to its end." }),
};

export const taskKinds = [broken];

import { z } from "zod";
import { pause } from "../../lib/abortable.ts";
import { parseRow } from "../parse-row.ts";
import { NO_SANDBOX } from "../sandbox-plan.ts";
import type { TaskKind } from "../task-kind.ts";

const rowSchema = z.looseObject({
  /** The reward to give. */
  reward: z.number().min(0).max(1).optional(),
  /** How long RUN takes. Units: milliseconds. */
  run_ms: z.int().min(0).optional(),
});

/** Does nothing and needs no sandbox and no model: it measures and tests the service itself. */
export const echo: TaskKind<z.infer<typeof rowSchema>> = {
  name: "echo",
  dataSources: ["echo"],
  needsBackend: false,
  tools: [],
  parse: (row) => parseRow(rowSchema, row),
  sandboxes: () => NO_SANDBOX,
  init: async () => {},
  run: async (row, { signal }) => {
    if (row.run_ms) await pause(row.run_ms, signal);
    return { stop_reason: "done", final_message: null, turns: 0 };
  },
  evaluate: async (row) => ({
    reward: row.reward ?? 1,
    rule: "echo",
    reason: "The row names its own reward.",
  }),
};

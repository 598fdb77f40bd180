import { z } from "zod";
import { TOOL_NAMES } from "../../agent/tools.ts";
import { ServiceError } from "../../errors.ts";
import { parseRow } from "../parse-row.ts";

const path = z.string().min(1).max(4096).regex(/^\//, "must be an absolute path");
const files = z.record(path, z.string());
const milliseconds = z
  .int()
  .min(1)
  .max(24 * 3_600_000);

const rowSchema = z.looseObject({
  instruction: z.string().min(1),
  image: z.string().min(1).nullish(),
  workdir: path.default("/workspace"),
  /** Files and a bash script that make the sandbox ready, in INIT, and in EVAL where that has a fresh one. */
  files: files.default({}),
  setup: z.string().default(""),
  setup_timeout_ms: milliseconds.default(120_000),
  tools: z.array(z.enum(TOOL_NAMES)).min(1).nullish(),
  /** Files and folders that are carried into a fresh sandbox for EVAL. Without: EVAL works in the agent's. */
  artefacts: z.array(path).min(1).nullish(),
  verifier: z.strictObject({
    /** A bash script. */
    command: z.string().min(1),
    /** Put in for EVAL only. */
    files: files.default({}),
    reward: z.enum(["exit_code", "output", "file"]).default("exit_code"),
    reward_file: path.optional(),
    /** Of the verifier's own time, without what a busy node keeps it waiting. */
    timeout_ms: milliseconds.default(600_000),
    /** A verifier that hangs over what was submitted gives 0; false: it is a failure. */
    timeout_is_zero: z.boolean().default(true),
  }),
});

export type CommandInstance = z.output<typeof rowSchema>;

export function parseCommandRow(raw: Record<string, unknown>): CommandInstance {
  const row = parseRow(rowSchema, raw);
  if (row.verifier.reward === "file" && row.verifier.reward_file === undefined) {
    const field = "instance.verifier.reward_file";
    const message = `${field}: is missing, and the reward is to be read from it`;
    throw new ServiceError("invalid_field", message, { field });
  }
  return row;
}

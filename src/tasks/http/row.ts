import { z } from "zod";
import type { ToolName } from "../../agent/tool.ts";
import { TOOL_NAMES } from "../../agent/tools.ts";
import type { Message, ToolSchema } from "../../inference/engine.ts";
import { isObject } from "../../lib/is-object.ts";
import { fromJsonText } from "../from-json-text.ts";
import { parseRow } from "../parse-row.ts";
import { promptMessages, promptSchema } from "../problem.ts";

const functionSchema = z.looseObject({
  /** Also the last part of the address that the tool is called at, which must not lead out of the server's. */
  name: z.string().regex(/^(?!\.{1,2}$)[^/]+$/, "must be a name, not a path"),
  description: z.string().nullish(),
  // Itself, not a copy: it remembers the text that it was read from.
  parameters: z.custom<Record<string, unknown>>(isObject, "must be an object").nullish(),
});

const rowSchema = z
  .looseObject({
    data_source: z.string(),
    prompt: promptSchema.nullish(),
    responses_create_params: z
      .looseObject({ input: z.unknown(), tools: z.array(functionSchema).nullish() })
      .nullish(),
    /** A row of NeMo Gym's as it was published: what its resources server is given. */
    gym_row: z
      .looseObject({
        responses_create_params: z.looseObject({ tools: z.array(functionSchema).nullish() }),
      })
      .nullish(),
    reward_model: z
      .preprocess(fromJsonText, z.looseObject({ ground_truth: z.unknown().optional() }))
      .nullish(),
    verifier: z
      .strictObject({
        /** Without: one of the servers that the operator has named. */
        url: z.string().optional(),
        /** `compute_score`: posts the answer. `nemo_gym`: a resources server, with its tools and its session. */
        protocol: z.enum(["compute_score", "nemo_gym"]).default("compute_score"),
        timeout_ms: z.int().min(1).max(3_600_000).optional(),
      })
      .default({ protocol: "compute_score" }),
    /** Tools of ours that the agent has besides; some of them need a sandbox. */
    agent_tools: z.array(z.enum(TOOL_NAMES)).nullish(),
  })
  .refine((row) => row.prompt ?? row.responses_create_params, {
    path: ["prompt"],
    message: "is missing, and so is responses_create_params",
  });

export type HttpInstance = {
  messages: Message[];
  row: Record<string, unknown>;
  dataSource: string;
  truth: unknown;
  verifier: {
    url: string | null;
    protocol: "compute_score" | "nemo_gym";
    timeoutMs: number | null;
  };
  agentTools: ToolName[];
  serverTools: ToolSchema[];
};

export function parseHttpRow(raw: Record<string, unknown>): HttpInstance {
  const row = parseRow(rowSchema, raw);
  const { url = null, protocol, timeout_ms = null } = row.verifier;
  const asked = (row.gym_row ?? row).responses_create_params;
  const tools = protocol === "nemo_gym" ? (asked?.tools ?? []) : [];
  const { input } = parseRow(z.looseObject({ input: promptSchema }), {
    input: row.prompt ?? row.responses_create_params?.input,
  });
  return {
    messages: promptMessages(input),
    row: (raw.gym_row as Record<string, unknown> | undefined) ?? raw,
    dataSource: row.data_source,
    truth: row.reward_model?.ground_truth ?? null,
    verifier: { url, protocol, timeoutMs: timeout_ms },
    agentTools: row.agent_tools ?? ["finish"],
    serverTools: tools.map(({ name, description, parameters }) => ({
      type: "function",
      function: { name, description: description ?? "", parameters: parameters ?? {} },
    })),
  };
}

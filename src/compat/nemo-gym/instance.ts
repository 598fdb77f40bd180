import { ServiceError } from "../../errors.ts";
import type { RolloutRequest } from "../../protocol/rollout.ts";
import { messagesOf } from "./messages.ts";
import { type GymServers, scorerOf } from "./scorer.ts";

type Row = Record<string, unknown>;
type Instance = RolloutRequest["instance"];

/**
 * The instance in a row of NeMo Gym's datasets. A row that says `data_source` is one of ours as it stands, and one of
 * SWE-bench's is a row of swe. Any other is answered as Gym's own simple agent does, and scored by a check of ours that
 * gives its server's rewards, or by that server, with its tools and its session.
 *
 * @throws ServiceError `unknown_task_kind`, `invalid_field`
 */
export function instanceOf(row: Row, servers: GymServers): Instance {
  if (typeof row.data_source === "string" && row.data_source !== GYM) return row as Instance;
  const software = softwareInstance(row);
  if (software) return software;
  const { input, tools } = (row.responses_create_params ?? {}) as {
    input?: unknown;
    tools?: unknown;
  };
  const scorer = scorerOf(row, toolNames(tools), servers);
  const prompt = messagesOf(input);
  if (!prompt.some(({ role }) => role === "user" || role === "tool")) {
    const field = "responses_create_params.input";
    throw new ServiceError("invalid_field", `${field}: has no user message`, { field });
  }
  if ("url" in scorer) {
    const verifier = { url: scorer.url, protocol: "nemo_gym" };
    return { data_source: GYM, prompt, verifier, agent_tools: [], gym_row: row };
  }
  const truth = { reward_model: { ground_truth: row.expected_answer } };
  return {
    ...row,
    prompt,
    data_source: "reasoning",
    verifier: scorer.check,
    ...(scorer.check === "math" && truth),
  };
}

/** Rows of this source that name no verifier are taken as NeMo Gym publishes them. */
export const GYM = "nemo_gym";

function toolNames(tools: unknown): string[] {
  if (!Array.isArray(tools)) return [];
  return tools.map((tool) => String(tool?.name ?? tool?.type ?? "unnamed"));
}

/**
 * The instance in a row of SWE-bench's or SWE-Gym's, which has its fields, or carries them as text. Null for a row of
 * something else.
 *
 * @throws ServiceError `invalid_field`
 */
export function softwareInstance(row: Row): Instance | null {
  if (typeof row.data_source === "string" && row.data_source !== GYM) return null;
  const { metadata } = (row.responses_create_params ?? {}) as { metadata?: unknown };
  for (const [field, place] of [
    ["metadata.instance_dict", row.metadata],
    ["responses_create_params.metadata.instance_dict", metadata],
  ] as const) {
    if (has(place, "instance_dict")) return packedInstance(place.instance_dict, field);
  }
  if (!("instance_id" in row && "problem_statement" in row)) return null;
  const { responses_create_params: _asked, ...fields } = row;
  return { ...fields, data_source: "swebench" };
}

function packedInstance(text: unknown, field: string): Instance {
  try {
    const fields: unknown = JSON.parse(String(text));
    if (typeof fields === "object" && fields !== null)
      return { ...fields, data_source: "swebench" };
  } catch {}
  throw new ServiceError("invalid_field", `${field}: is not a JSON object as text`, { field });
}

function has<K extends string>(value: unknown, key: K): value is Record<K, unknown> {
  return typeof value === "object" && value !== null && key in value;
}

import { ServiceError } from "../../errors.ts";
import type { RolloutRequest } from "../../protocol/rollout.ts";

type Row = Record<string, unknown>;
type Instance = RolloutRequest["instance"];

/** What a row's fields say about who scores it, most telling first. */
const VERIFIERS: [known: (row: Row) => boolean, verifier: string][] = [
  [({ verifier_metadata }) => has(verifier_metadata, "unit_tests"), "code"],
  [({ instruction_id_list }) => Array.isArray(instruction_id_list), "instructions"],
  [({ options }) => options !== undefined, "choice"],
  [({ expected_answers }) => Array.isArray(expected_answers), "tool_calls"],
  [({ expected_answer }) => expected_answer !== undefined, "math"],
];

/**
 * The instance in a row of NeMo Gym's datasets. A row that says `data_source` is one of ours as it stands; any other
 * is answered in one turn, as Gym's own simple agent does without tools, and scored by the verifier that its fields
 * are for.
 *
 * @throws ServiceError `unknown_task_kind`, `invalid_field`
 */
export function instanceOf(row: Row, prompt: { role: string; content: string }[]): Instance {
  if (typeof row.data_source === "string") return row as Instance;
  const verifier = VERIFIERS.find(([known]) => known(row))?.[1];
  if (verifier === undefined) {
    throw new ServiceError("unknown_task_kind", "the row's fields are of no task kind here", {
      field: "data_source",
      mend: "add data_source with one of the task kinds of the README, and the fields it asks for",
    });
  }
  const truth = { ground_truth: row.expected_answer };
  return {
    ...row,
    prompt,
    data_source: "reasoning",
    verifier,
    ...(verifier === "math" && { reward_model: truth }),
  };
}

/**
 * The instance in a row of SWE-bench's or SWE-Gym's, which has its fields, or carries them as text. Null for a row of
 * something else.
 *
 * @throws ServiceError `invalid_field`
 */
export function softwareInstance(row: Row): Instance | null {
  if (typeof row.data_source === "string") return null;
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

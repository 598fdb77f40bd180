import { ServiceError } from "../../errors.ts";

type Row = Record<string, unknown>;

/** A check of ours, by the name that the kind `reasoning` has for it. */
export type Check = "math" | "choice" | "code" | "instructions" | "tool_calls";

/** Who scores a row: a check of ours, or the resources server at `url`. */
export type Scorer = { check: Check } | { url: string };

/** Resources servers by name; `*` stands for all others. */
export type GymServers = Readonly<Record<string, string>>;

/** Resources servers whose rewards a check of ours gives as well. */
const CHECKS = new Map<string, Check>([
  ["math_with_judge", "math"],
  ["polymath", "math"],
  ["prime_agent_math", "math"],
  ["mcqa", "choice"],
  ["gpqa_diamond", "choice"],
  ["code_gen", "code"],
  ["instruction_following", "instructions"],
  ["ifbench", "instructions"],
  ["xlam_fc", "tool_calls"],
]);

/** Modes of `mcqa`. */
const MODES = [
  "strict_single_letter_boxed",
  "lenient_boxed",
  "lenient_answer_colon",
  "lenient_answer_colon_md",
];

/** By this name callers ask for this service, which says nothing of the row. */
const OURS = "rolloutd";
const AGENT_ENDING = /_(?:simple_|gymnasium_|pivot_|tool_simulation_)?agent$/;

/**
 * Who scores a row of NeMo Gym's: the server that it names (`agent_ref`, `verifier_type`), else the one that its fields
 * are known from. A row that could be of several servers is refused, because a wrong verifier gives zeros without a word.
 *
 * @throws ServiceError `unknown_task_kind`
 */
export function scorerOf(row: Row, tools: readonly string[], servers: GymServers): Scorer {
  const name = nameOf(row);
  const url = (name !== null && Object.hasOwn(servers, name) ? servers[name] : undefined) ?? null;
  if (url !== null) return { url };
  const named = name === null ? checkOfFields(row) : (CHECKS.get(name) ?? null);
  const check = named !== null && isWhole(row, named) ? named : null;
  if (check !== null && (tools.length === 0 || check === "tool_calls")) return { check };
  if (Object.hasOwn(servers, "*")) return { url: servers["*"] as string };
  throw refused(name, tools, check, row);
}

function nameOf({ agent_ref: agent, verifier_type: type }: Row): string | null {
  if (typeof type === "string") return type;
  const name = (agent as { name?: unknown } | null | undefined)?.name;
  if (typeof name !== "string" || name === OURS) return null;
  return name.replace(AGENT_ENDING, "");
}

/** Fields that tell nothing about who scores a row, and those that callers add. */
const SILENT =
  /^(?:_.*|agent_ref|skills_ref|policy_.*|responses_create_params|id|uuid|question|expected_answer)$/;

function checkOfFields(row: Row): Check | null {
  const others = Object.keys(row).filter((key) => !SILENT.test(key));
  const hasOnly = (...known: string[]) => others.every((key) => known.includes(key));
  if (hasOnly("verifier_metadata", "dataset", "hash_id", "source") && others.length > 0)
    return "code";
  if (hasOnly("instruction_id_list", "kwargs", "grading_mode", "prompt") && others.length > 0)
    return "instructions";
  if (hasOnly("options", "grading_mode", "template_metadata", "metadata") && row.options)
    return asksAsGraded(row) ? "choice" : null;
  if (hasOnly("expected_answers") && others.length > 0) return "tool_calls";
  return hasOnly() && asksForBox(row) && isMathematics(row.expected_answer) ? "math" : null;
}

/** Whether the row has what the check reads, in the form in which it reads it. */
function isWhole(row: Row, check: Check): boolean {
  switch (check) {
    case "code": {
      const { unit_tests: tests } = (row.verifier_metadata ?? {}) as Row;
      return typeof tests === "object" && tests !== null && "inputs" in tests;
    }
    case "instructions":
      return Array.isArray(row.instruction_id_list);
    case "choice": {
      const regex = (row.template_metadata as Row | undefined)?.output_regex;
      return row.options !== undefined && (MODES.includes(`${row.grading_mode}`) || regex != null);
    }
    case "tool_calls":
      return Array.isArray(row.expected_answers);
    default:
      return row.expected_answer != null;
  }
}

/** Rows of `gpqa_diamond` name mcqa's strictest mode, ask for `Answer: X`, and are graded by either. */
function asksAsGraded(row: Row): boolean {
  return (
    row.template_metadata != null || !`${row.grading_mode}`.includes("boxed") || asksForBox(row)
  );
}

function asksForBox({ responses_create_params: params }: Row): boolean {
  return JSON.stringify((params as Row | undefined)?.input ?? "").includes("\\\\boxed{");
}

/** A word is no mathematics: such rows are answered in words, which a judge compares. */
function isMathematics(truth: unknown): boolean {
  if (typeof truth === "number") return true;
  if (typeof truth !== "string" || truth.trim() === "") return false;
  return !/[\p{L}]{2}/u.test(truth.replace(/\\[a-zA-Z]+/g, " "));
}

function refused(
  name: string | null,
  tools: readonly string[],
  check: Check | null,
  row: Row,
): ServiceError {
  const field = name === null ? "instance" : row.verifier_type ? "verifier_type" : "agent_ref.name";
  const what =
    check !== null || tools.length > 0
      ? `the row's tools (${tools.slice(0, 5).join(", ")}) belong to its resources server`
      : name === null
        ? `the row's fields (${Object.keys(row).slice(0, 12).join(", ")}) do not say how it is scored`
        : `rows of "${name}" are scored by their resources server`;
  const server = name ?? "NAME";
  const mend = `start the service with --gym-servers ${server}=URL, or add verifier_type (${[...CHECKS.keys()].join(", ")}) or data_source`;
  return new ServiceError("unknown_task_kind", what, { field, mend });
}

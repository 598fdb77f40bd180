import { z } from "zod";
import type { TestLists } from "../../verifiers/tests/grade.ts";
import { parseRow } from "../parse-row.ts";
import { limitMs, type TestPlan, testPlan, wrong } from "./test-plan.ts";

/** The published collections whose rows this kind reads. */
export type Collection = "swebench" | "multimodal" | "r2egym" | "swesmith";

export type SweInstance = {
  id: string;
  collection: Collection;
  repo: string;
  version: string;
  problem: string;
  /** Where the image has the repository. */
  folder: string;
  /** The commit that the task begins at; null where the image's own is meant. */
  baseCommit: string | null;
  /** As the row names it; null where it is to be made from the other fields. */
  image: string | null;
  /** The row's own solution; null where it has none. */
  solution: string | null;
  /** What brings the tests, which only EVAL sees. */
  testPatch: string;
  /** A fault that INIT puts in. */
  bug: string | null;
  /** Files that only EVAL may see. */
  hidden: string[];
  tests: TestPlan;
  grading: { lists: TestLists } | { expected: Record<string, string> };
  /** Whether tests of ours with a known outcome run along, to notice a runner that was tampered with. */
  probes: boolean;
};

const text = z.string().nullish();
const names = z.union([z.string(), z.array(z.string())]).nullish();

const rowSchema = z.looseObject({
  instance_id: text,
  data_kind: text,
  repo: text,
  repo_name: text,
  version: text,
  base_commit: text,
  problem_statement: text,
  patch: text,
  test_patch: text,
  FAIL_TO_PASS: names,
  PASS_TO_PASS: names,
  image: text,
  image_name: text,
  docker_image: text,
  image_assets: z.unknown().optional(),
  eval_script: text,
  log_parser: text,
  test_cmd: z.union([z.string(), z.array(z.string())]).nullish(),
  install_config: z.unknown().optional(),
  test_timeout_s: z.number().positive().max(86_400).nullish(),
  expected_output_json: z.unknown().optional(),
  folder: z.string().regex(/^\//, "must be an absolute path").nullish(),
  probes: z.boolean().nullish(),
});

export type SweRow = z.infer<typeof rowSchema>;

const R2E_LIMIT_MS = 300_000;

const R2E_SCRIPT = `[ -e /testbed/r2e_tests ] || ln -s /r2e_tests /testbed/r2e_tests
bash /testbed/run_tests.sh`;
const R2E_HIDDEN = ["/r2e_tests", "/testbed/r2e_tests", "/testbed/run_tests.sh"];

/**
 * A row of SWE-bench, SWE-Gym, R2E-Gym, SWE-smith or SWE-bench Multimodal, as published. R2E-Gym's have no id of their
 * own: their image is one.
 */
export function parseSweRow(raw: Record<string, unknown>): SweInstance {
  const row = parseRow(rowSchema, raw);
  if (!row.instance_id && !row.docker_image) throw wrong("instance_id", "is missing");
  const collection = collectionOf(row);
  const shared = {
    id: row.instance_id || (row.docker_image ?? "").replaceAll(/[/:]/g, "_"),
    collection,
    repo: row.repo ?? row.repo_name ?? "",
    version: row.version ?? row.base_commit ?? "",
    problem: row.problem_statement ?? "",
    folder: row.folder ?? "/testbed",
    image: row.image ?? row.docker_image ?? row.image_name ?? null,
  };
  if (collection === "r2egym") return { ...shared, ...r2eParts(row) };
  const lists = {
    failToPass: listOf(row.FAIL_TO_PASS, "FAIL_TO_PASS"),
    passToPass: listOf(row.PASS_TO_PASS, "PASS_TO_PASS"),
  };
  if (lists.failToPass.length === 0) throw wrong("FAIL_TO_PASS", "names no test");
  const testPatch = row.test_patch ?? "";
  const isSmith = collection === "swesmith";
  const files = [...new Set(lists.failToPass.map((name) => name.split("::")[0] ?? ""))];
  const tests = testPlan(row, isSmith, testPatch, lists);
  return {
    ...shared,
    baseCommit: isSmith ? null : (row.base_commit ?? null),
    testPatch,
    bug: isSmith ? required(row.patch, "patch") : null,
    solution: isSmith ? null : (row.patch ?? null),
    hidden: isSmith ? files : [],
    tests,
    grading: { lists },
    // Where tests are chosen by name, ours would not be.
    probes: row.probes ?? !("targets" in tests && tests.targets[0] === "-k"),
  };
}

function collectionOf(row: SweRow): Collection {
  const { data_kind: kind } = row;
  if (kind === "r2egym" || kind === "swesmith") return kind;
  if (kind === "swebench_multimodal") return "multimodal";
  if (kind === "swebench") return "swebench";
  if (kind) throw wrong("data_kind", `is "${kind}", which is no collection that is known`);
  if (row.docker_image) return "r2egym";
  if (row.image_assets) return "multimodal";
  return row.image_name && !row.test_patch ? "swesmith" : "swebench";
}

function r2eParts(row: SweRow) {
  const expected = jsonOf(row.expected_output_json, "expected_output_json");
  if (typeof expected !== "object" || expected === null || Array.isArray(expected)) {
    throw wrong("expected_output_json", "must be an object of statuses by test");
  }
  return {
    baseCommit: null,
    testPatch: "",
    bug: null,
    solution: row.patch ?? null,
    hidden: R2E_HIDDEN,
    tests: { format: "r2e", timeoutMs: limitMs(row, R2E_LIMIT_MS), script: R2E_SCRIPT } as const,
    grading: { expected: expected as Record<string, string> },
    // Its lists hold every test of the run, so that others can't run along.
    probes: false,
  };
}

function listOf(value: string | string[] | null | undefined, field: string): string[] {
  if (value === null || value === undefined) return [];
  const list = typeof value === "string" ? jsonOf(value, field) : value;
  if (Array.isArray(list) && list.every((name) => typeof name === "string")) return list;
  throw wrong(field, "must be a list of names, or its JSON text");
}

function jsonOf(value: unknown, field: string): unknown {
  if (typeof value === "object" && value !== null) return value;
  try {
    return JSON.parse(String(value));
  } catch {
    throw wrong(field, "must be JSON");
  }
}

function required(value: string | null | undefined, field: string): string {
  if (value) return value;
  throw wrong(field, "is missing");
}

import { ServiceError } from "../../errors.ts";
import { type LogFormatName, logFormatNamed } from "../../verifiers/tests/formats.ts";
import type { TestLists } from "../../verifiers/tests/grade.ts";
import { parsePatch } from "./patch.ts";
import type { SweRow } from "./row.ts";
import { suiteOf } from "./suites.ts";

/** How EVAL runs a row's tests. */
export type TestPlan = {
  format: LogFormatName;
  timeoutMs: number;
} & (
  | /** The row's own script, which also puts its tests in place. */ { script: string }
  | /** A runner, with the files or modules that it is to run. */ {
      command: string;
      targets: string[];
    }
);

const TEST_LIMIT_MS = 1_200_000;
/** SWE-smith's, unless the row says otherwise. */
const SMITH_COMMAND = "pytest --disable-warnings --color=no --tb=no --verbose";

/** The row's own way to run its tests, else its repository's. */
export function testPlan(
  row: SweRow,
  smith: boolean,
  testPatch: string,
  lists: TestLists,
): TestPlan {
  const timeoutMs = limitMs(row, TEST_LIMIT_MS);
  const config = (row.install_config ?? {}) as { test_cmd?: unknown; log_parser?: unknown };
  const named =
    row.log_parser ?? (typeof config.log_parser === "string" ? config.log_parser : null);
  const format = named ? logFormatNamed(named) : null;
  if (named && !format) throw wrong("log_parser", `is "${named}", which is no log format`);
  if (row.eval_script) {
    const known = format ?? suiteOf(row.repo ?? "")?.format;
    if (!known) throw wrong("log_parser", "is missing: how is the log of eval_script read?");
    return { format: known, timeoutMs, script: row.eval_script };
  }
  const suite = suiteOf(row.repo ?? "");
  const own = row.test_cmd ?? (config.test_cmd as string | string[] | undefined);
  const command = Array.isArray(own) ? own.join("\n") : own;
  if (smith) {
    const files = [...lists.failToPass, ...lists.passToPass].map(
      (name) => name.split("::")[0] ?? "",
    );
    const targets = [...new Set(files)].toSorted();
    return {
      format: format ?? "pytest-progress",
      timeoutMs,
      command: command ?? SMITH_COMMAND,
      targets,
    };
  }
  const chosen = command ?? suite?.command(row.version ?? "");
  const known = format ?? suite?.format;
  if (!chosen || !known) {
    const message = `is "${row.repo ?? ""}", whose tests nobody here knows how to run`;
    const mend = "add eval_script and log_parser, or test_cmd and log_parser, to the row";
    throw new ServiceError("invalid_field", `instance.repo ${message}`, {
      field: "instance.repo",
      mend,
    });
  }
  const selected = command ? null : (suite?.select?.(testPatch) ?? null);
  const targets = selected ?? targetsOf(testPatch).map(suite?.target ?? ((path) => path));
  return { format: known, timeoutMs, command: chosen, targets };
}

/** Data files that a test patch brings along are not what a runner is given. */
const NO_TESTS = /(\.(json|png|txt|md|jpg|jpeg|pkl|yml|yaml|toml)|csv)$/;

function targetsOf(testPatch: string): string[] {
  return patchFiles(testPatch, "test_patch")
    .filter(({ change, path }) => change !== "deleted" && !NO_TESTS.test(path))
    .map(({ path }) => path);
}

/** The files that a row's patch touches. Of one that is no strict patch only the headings are read. */
export function patchFiles(
  patch: string,
  field: string,
): { path: string; change: "added" | "deleted" | "modified" }[] {
  if (patch.trim() === "") return [];
  try {
    return parsePatch(patch).flatMap(({ path, from, change }) => [
      { path, change },
      ...(from === undefined ? [] : [{ path: from, change: "deleted" as const }]),
    ]);
  } catch {
    const files = [...patch.matchAll(/^diff --git a\/.*? b\/(.*)$/gm)].map(([, path = ""]) => path);
    if (files.length === 0) throw wrong(field, "is no patch");
    return files.map((path) => ({ path, change: "modified" as const }));
  }
}

export function limitMs(row: SweRow, defaultMs: number): number {
  return row.test_timeout_s ? row.test_timeout_s * 1000 : defaultMs;
}

/** Names the field of the row. */
export function wrong(field: string, what: string): ServiceError {
  return new ServiceError("invalid_field", `instance.${field} ${what}`, {
    field: `instance.${field}`,
  });
}

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { ServiceError } from "../errors.ts";
import type { PlacedRow, Row } from "./rows.ts";

const MAX_FOLDER_BYTES = 64 << 20;

/**
 * The rows of a Harbor task folder, or of a folder of such folders: everything that a service needs is in the
 * row, so that it may run on another machine.
 *
 * @throws ServiceError `invalid_field`
 */
export function harborRows(folder: string): PlacedRow[] {
  if (existsSync(join(folder, "task.toml"))) return [placedRow(folder)];
  const tasks = readdirSync(folder)
    .toSorted()
    .map((name) => join(folder, name))
    .filter((path) => existsSync(join(path, "task.toml")));
  if (tasks.length > 0) return tasks.map(placedRow);
  throw new ServiceError(
    "invalid_field",
    `${folder} is no Harbor task folder, and has none in it`,
    {
      mend: "a task folder holds task.toml, instruction.md and tests/test.sh",
    },
  );
}

function placedRow(folder: string): PlacedRow {
  return { row: rowOf(folder), place: folder };
}

function rowOf(folder: string): Row {
  const text = (name: string) => {
    const path = join(folder, name);
    if (existsSync(path)) return readFileSync(path, "utf8");
    throw new ServiceError("invalid_field", `${folder} lacks ${name}`);
  };
  const dockerfile = join(folder, "environment/Dockerfile");
  const workdir = existsSync(dockerfile) ? lastWorkdir(readFileSync(dockerfile, "utf8")) : null;
  return {
    data_source: "harbor",
    instance_id: basename(folder),
    instruction: text("instruction.md"),
    task_toml: text("task.toml"),
    tests: filesOf(join(folder, "tests")),
    ...(existsSync(join(folder, "solution")) && { solution: filesOf(join(folder, "solution")) }),
    ...(workdir !== null && { workdir }),
  };
}

function lastWorkdir(dockerfile: string): string | null {
  return [...dockerfile.matchAll(/^\s*WORKDIR\s+(\/\S*)/gim)].at(-1)?.[1] ?? null;
}

function filesOf(folder: string): Record<string, string> {
  if (!existsSync(folder)) throw new ServiceError("invalid_field", `${folder} is missing`);
  const files: Record<string, string> = {};
  let bytes = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    bytes += statSync(path).size;
    if (bytes > MAX_FOLDER_BYTES) {
      throw new ServiceError("invalid_field", `${folder} has more than ${MAX_FOLDER_BYTES} bytes`);
    }
    files[relative(folder, path)] = readFileSync(path).toString("base64");
  }
  return files;
}

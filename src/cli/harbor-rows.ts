import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { ServiceError } from "../errors.ts";
import { scriptOfCommands } from "../tasks/harbor/solution-yaml.ts";
import type { PlacedRow, Row } from "./rows.ts";

const MAX_FOLDER_BYTES = 64 << 20;
/** What makes a folder a task, of Harbor and of Terminal-Bench 1. */
const MARKS = ["task.toml", "task.yaml"];

/**
 * The rows of a task folder, or of a folder of such folders: everything that a service needs is in the
 * row, so that it may run on another machine.
 *
 * @throws ServiceError `invalid_field`
 */
export function harborRows(folder: string): PlacedRow[] {
  if (isTask(folder)) return [placedRow(folder)];
  const tasks = readdirSync(folder)
    .toSorted()
    .map((name) => join(folder, name))
    .filter(isTask);
  if (tasks.length > 0) return tasks.map(placedRow);
  throw new ServiceError("invalid_field", `${folder} is no task folder, and has none in it`, {
    mend: "a task folder holds task.toml, instruction.md and tests/test.sh (Harbor), or task.yaml and run-tests.sh (Terminal-Bench 1)",
  });
}

function isTask(folder: string): boolean {
  return MARKS.some((name) => existsSync(join(folder, name)));
}

function placedRow(folder: string): PlacedRow {
  const isHarbor = existsSync(join(folder, "task.toml"));
  return { row: isHarbor ? harborRow(folder) : firstRow(folder), place: folder };
}

function harborRow(folder: string): Row {
  const steps = stepsOf(join(folder, "steps"));
  return {
    data_source: "harbor",
    instance_id: basename(folder),
    ...(steps === null
      ? { instruction: text(folder, "instruction.md"), tests: filesOf(join(folder, "tests")) }
      : { steps, ...optional("tests", filesIn(join(folder, "tests"))) }),
    task_toml: text(folder, "task.toml"),
    ...optional("solution", filesIn(join(folder, "solution"))),
    ...optional("dockerfile", textIn(folder, "environment/Dockerfile")),
    ...optional("compose", composeOf(join(folder, "environment"))),
  };
}

/** Of Terminal-Bench 1, whose scripts lie beside `tests`. */
function firstRow(folder: string): Row {
  const script = text(folder, "run-tests.sh");
  const solution = textIn(folder, "solution.sh") ?? commandsIn(folder);
  return {
    data_source: "terminal-bench",
    instance_id: basename(folder),
    task_yaml: text(folder, "task.yaml"),
    tests: { ...filesIn(join(folder, "tests")), "run-tests.sh": base64(script) },
    ...optional("solution", solution && { "solution.sh": base64(solution) }),
    ...optional("dockerfile", textIn(folder, "Dockerfile")),
    ...optional("compose", composeOf(folder)),
  };
}

function commandsIn(folder: string): string | null {
  const yaml = textIn(folder, "solution.yaml");
  return yaml === null ? null : scriptOfCommands(yaml);
}

function stepsOf(folder: string): Record<string, object> | null {
  if (!existsSync(folder)) return null;
  const names = readdirSync(folder, { withFileTypes: true }).filter((it) => it.isDirectory());
  const steps = names.map(({ name }) => {
    const at = join(folder, name);
    return [
      name,
      {
        instruction: text(at, "instruction.md"),
        ...optional("tests", filesIn(join(at, "tests"))),
        ...optional("solution", filesIn(join(at, "solution"))),
        ...optional("workdir", filesIn(join(at, "workdir"))),
      },
    ];
  });
  return Object.fromEntries(steps);
}

function composeOf(folder: string): string | null {
  return textIn(folder, "docker-compose.yaml") ?? textIn(folder, "docker-compose.yml");
}

function optional(name: string, value: unknown): object {
  return value ? { [name]: value } : {};
}

function text(folder: string, name: string): string {
  const found = textIn(folder, name);
  if (found !== null) return found;
  throw new ServiceError("invalid_field", `${folder} lacks ${name}`);
}

function textIn(folder: string, name: string): string | null {
  const path = join(folder, name);
  return existsSync(path) ? readFileSync(path, "utf8") : null;
}

function base64(content: string): string {
  return Buffer.from(content).toString("base64");
}

function filesOf(folder: string): Record<string, string> {
  const files = filesIn(folder);
  if (files !== null) return files;
  throw new ServiceError("invalid_field", `${folder} is missing`);
}

function filesIn(folder: string): Record<string, string> | null {
  if (!existsSync(folder)) return null;
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

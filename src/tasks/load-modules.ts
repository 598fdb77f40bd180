import { existsSync } from "node:fs";
import { ServiceError } from "../errors.ts";
import { nearest } from "../lib/nearest.ts";
import { guarded } from "./guarded.ts";
import { kindProblem, said } from "./kind-check.ts";
import { ModuleSource, type Place, thrownDetails, told } from "./module-source.ts";
import { registerTaskKind, TASK_KINDS } from "./registry.ts";
import type { TaskKind } from "./task-kind.ts";

/** Of this thread. */
const loaded = new Set<string>();

/** For what a module awaits at its top level. */
const LOAD_LIMIT_MS = 30_000;
const MEND = "export `taskKinds`, a list of task kinds";

/**
 * Loads the user's own task kinds: modules in TypeScript or JavaScript that export `taskKinds`. They run with all
 * rights of the service, in each of its threads. A second call for the same module adds nothing. Whatever can be
 * seen without calling a kind is checked here.
 *
 * @param paths absolute
 * @throws ServiceError `task_module_invalid` with the line and what is wanted
 */
export async function loadTaskModules(
  paths: readonly string[],
  limitMs = LOAD_LIMIT_MS,
): Promise<void> {
  for (const path of paths) {
    if (loaded.has(path)) continue;
    const source = new ModuleSource(path);
    const taskKinds = exported(await imported(path, limitMs), source);
    for (const [index, kind] of taskKinds.entries()) {
      const problem = kindProblem(kind);
      if (problem === null) continue;
      const where = `taskKinds[${index}]${problem.kind === null ? "" : ` (${problem.kind})`}`;
      const place = source.member(problem.kind, problem.member);
      const member = problem.member === "taskKinds" ? where : `${where}.${problem.member}`;
      throw invalid(place, `${member} ${problem.problem}`);
    }
    for (const kind of taskKinds as TaskKind<unknown>[]) register(source, kind);
    loaded.add(path);
  }
}

async function imported(path: string, limitMs: number): Promise<Record<string, unknown>> {
  if (!existsSync(path)) {
    const mend = "give --tasks the paths of modules, with commas between";
    throw new ServiceError(
      "task_module_invalid",
      `the task module ${path}: there is no such file`,
      {
        mend,
      },
    );
  }
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(LATE)), limitMs);
  try {
    return await Promise.race([import(path), late.promise]);
  } catch (error) {
    if (error instanceof Error && error.message === LATE) {
      const why = `did not finish loading in ${limitMs} ms: something at its top level is awaited for ever`;
      throw invalid({ file: path, line: 1 }, why, "await in `init` or `run` instead");
    }
    const { place, message } = importFailure(error, path);
    throw invalid(
      place,
      `can't be loaded: ${message}`,
      "mend the module, or leave it out of --tasks",
    );
  } finally {
    clearTimeout(timer);
  }
}

const LATE = "the module did not finish loading";

/** What the runtime says of the first mistake: of a syntax error, a package that is not there, a throw. */
function importFailure(error: unknown, path: string): { place: Place; message: string } {
  const first = (error as { errors?: unknown[] })?.errors?.[0] ?? error;
  const { message, position } = (first ?? {}) as {
    message?: string;
    position?: { file?: string; line?: number } | null;
  };
  const thrown = thrownDetails(error);
  const file = position?.file || thrown.file || path;
  const line = position?.line ?? thrown.line ?? 1;
  return { place: { file, line }, message: (message ?? String(error)).split("\n")[0] ?? "" };
}

function exported(module: Record<string, unknown>, source: ModuleSource): unknown[] {
  const { taskKinds } = module;
  if (taskKinds === undefined) {
    const names = Object.keys(module);
    const meant = nearest("taskKinds", names);
    const others = names.length === 0 ? "nothing" : names.join(", ");
    const place = source.place([meant ?? names[0] ?? "export", "export"]);
    const why = names.includes("default")
      ? "it has a default export, which is not looked at"
      : meant
        ? `it exports ${meant}, and not taskKinds`
        : `it does not export taskKinds, but ${others}`;
    throw invalid(place, why);
  }
  const place = source.place(["taskKinds"]);
  if (!Array.isArray(taskKinds))
    throw invalid(place, `taskKinds must be a list, not ${said(taskKinds)}`);
  if (taskKinds.length === 0) throw invalid(place, "taskKinds is an empty list");
  return taskKinds;
}

function register(source: ModuleSource, kind: TaskKind<unknown>): void {
  if (TASK_KINDS.some(({ name }) => name === kind.name)) {
    const place = source.member(kind.name, "name");
    throw invalid(place, `there is a task kind ${kind.name} already`, "give it another name");
  }
  const taken = TASK_KINDS.flatMap((other) => other.dataSources);
  const twice = kind.dataSources.find((name) => taken.includes(name));
  if (twice !== undefined) {
    const place = source.member(kind.name, "dataSources");
    throw invalid(place, `data_source ${twice} means another kind already`, "give it another one");
  }
  registerTaskKind(guarded(kind, source.path));
}

function invalid(place: Place, why: string, mend: string = MEND): ServiceError {
  const message = `the task module ${told(place)}: ${why}`;
  return new ServiceError("task_module_invalid", message, { mend, details: place });
}

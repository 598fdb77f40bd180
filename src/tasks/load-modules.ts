import { z } from "zod";
import { ServiceError } from "../errors.ts";
import { guarded } from "./guarded.ts";
import { registerTaskKind, TASK_KINDS } from "./registry.ts";
import type { TaskKind } from "./task-kind.ts";

/** Of this thread. */
const loaded = new Set<string>();

const fn = z.custom<(...args: never[]) => unknown>((value) => typeof value === "function", {
  message: "must be a function",
});

const kindSchema = z.looseObject({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "must be 1-64 of A-Z a-z 0-9 . _ -"),
  dataSources: z.array(z.string().min(1)).min(1),
  needsBackend: z.boolean(),
  tools: z.array(z.string()),
  parse: fn,
  sandboxes: fn,
  init: fn,
  run: fn,
  evaluate: fn,
});

const moduleSchema = z.looseObject({ taskKinds: z.array(kindSchema).min(1) });

/**
 * Loads the user's own task kinds: modules in TypeScript or JavaScript that export `taskKinds`. They run with all
 * rights of the service, in each of its threads. A second call for the same module adds nothing.
 *
 * @param paths absolute
 * @throws ServiceError `task_module_invalid`
 */
export async function loadTaskModules(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    if (loaded.has(path)) continue;
    loaded.add(path);
    const module: unknown = await import(path).catch((error) => {
      throw invalid(path, `can't be loaded: ${error instanceof Error ? error.message : error}`);
    });
    const parsed = moduleSchema.safeParse(module);
    if (!parsed.success) {
      const issue = parsed.error.issues[0];
      throw invalid(path, `${issue?.path.join(".")}: ${issue?.message}`);
    }
    const { taskKinds } = module as { taskKinds: TaskKind<unknown>[] };
    for (const kind of taskKinds) register(path, kind);
  }
}

function register(path: string, kind: TaskKind<unknown>): void {
  if (TASK_KINDS.some(({ name }) => name === kind.name)) {
    throw invalid(path, `there is a task kind ${kind.name} already`);
  }
  const taken = TASK_KINDS.flatMap((other) => other.dataSources);
  const twice = kind.dataSources.find((source) => taken.includes(source));
  if (twice !== undefined) throw invalid(path, `data_source ${twice} means another kind already`);
  registerTaskKind(guarded(kind));
}

function invalid(path: string, why: string): ServiceError {
  const mend = "export `taskKinds`, a list of task kinds";
  return new ServiceError("task_module_invalid", `the task module ${path}: ${why}`, { mend });
}

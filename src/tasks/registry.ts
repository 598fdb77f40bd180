import { ServiceError } from "../errors.ts";
import { nearest } from "../lib/nearest.ts";
import { code } from "./code/code.ts";
import { command } from "./command/command.ts";
import { echo } from "./echo/echo.ts";
import { harbor } from "./harbor/harbor.ts";
import { http } from "./http/http.ts";
import { math } from "./math/math.ts";
import { reasoning } from "./reasoning/reasoning.ts";
import { stem } from "./stem/stem.ts";
import { swe } from "./swe/swe.ts";
import type { TaskKind } from "./task-kind.ts";

/** Instances are opaque outside their own kind, so the registry holds kinds of any instance type. */
// biome-ignore lint/suspicious/noExplicitAny: each kind only ever gets what its own `parse` gave.
const kinds: TaskKind<any>[] = [math, code, stem, swe, harbor, reasoning, command, http, echo];

export const TASK_KINDS: readonly TaskKind<unknown>[] = kinds;

/** Adds a kind of the user's; `load-modules.ts` sees to it that it hides none. */
export function registerTaskKind(kind: TaskKind<unknown>): void {
  kinds.push(kind);
}

/** The task kind of a dataset row. @throws ServiceError `unknown_task_kind` */
export function taskKindOf(dataSource: string) {
  const kind =
    kinds.find((candidate) => candidate.dataSources.includes(dataSource)) ??
    kinds.find((candidate) => candidate.dataSources.some((name) => covers(name, dataSource)));
  if (kind) return kind;
  const known = kinds.flatMap((candidate) => candidate.dataSources);
  const meant = nearest(dataSource, known);
  throw new ServiceError("unknown_task_kind", `there is no task kind for "${dataSource}"`, {
    field: "instance.data_source",
    mend: meant ? `did you mean "${meant}"?` : `use one of: ${known.join(", ")}`,
  });
}

/** `deepcoder*` stands for everything that begins so. */
function covers(name: string, dataSource: string): boolean {
  return name.endsWith("*") && dataSource.startsWith(name.slice(0, -1));
}

/** The task kind that a rollout names. @throws ServiceError `unknown_task_kind` */
export function taskKindNamed(name: string) {
  const kind = kinds.find((candidate) => candidate.name === name);
  if (kind) return kind;
  throw new ServiceError("unknown_task_kind", `there is no task kind "${name}"`, {
    field: "task_kind",
    mend: `use one of: ${kinds.map((candidate) => candidate.name).join(", ")}`,
  });
}

/** @throws ServiceError `unknown_task_kind`, as for a job that a newer version has stored. */
export function taskKindByName(name: string) {
  const kind = kinds.find((candidate) => candidate.name === name);
  if (kind) return kind;
  const mend = "use the version of rolloutd that accepted the job";
  throw new ServiceError("unknown_task_kind", `there is no task kind ${name}`, { mend });
}

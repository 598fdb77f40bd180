import { ERRORS, type ErrorCode, ServiceError } from "../errors.ts";
import type { TaskKind } from "./task-kind.ts";

/**
 * A user's kind as the service calls it. Its modules can't import our errors, so that what they throw is told by the
 * place where it happened: a row that is refused, an environment that failed, a verifier without a verdict. An error
 * whose `code` is one of ours keeps it.
 */
export function guarded(kind: TaskKind<unknown>): TaskKind<unknown> {
  return {
    ...kind,
    parse: (row) => refusing(() => kind.parse(row)),
    sandboxes: (instance, settings) => refusing(() => kind.sandboxes(instance, settings)),
    init: (...given) => failing("task_failed", () => kind.init(...given)),
    run: (...given) => failing("task_failed", () => kind.run(...given)),
    evaluate: (...given) => failing("verifier_failed", () => kind.evaluate(...given)),
  };
}

function refusing<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw typed(error, "invalid_field");
  }
}

async function failing<T>(code: ErrorCode, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw typed(error, code);
  }
}

function typed(error: unknown, fallback: ErrorCode): unknown {
  if (error instanceof ServiceError) return error;
  const { code, field } = (error ?? {}) as { code?: unknown; field?: unknown };
  const known = typeof code === "string" && Object.hasOwn(ERRORS, code);
  const message = error instanceof Error ? error.message : String(error);
  const named = typeof field === "string" ? field : "instance";
  return new ServiceError(known ? (code as ErrorCode) : fallback, message, {
    cause: error,
    ...(fallback === "invalid_field" ? { field: named } : {}),
  });
}

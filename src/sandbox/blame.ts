import { ServiceError } from "../errors.ts";
import type { SandboxHandle } from "./sandbox.ts";

/** The error, or one that does not blame the image where the model's commands have run in the sandbox before. */
export function blame(error: unknown, handle: SandboxHandle): unknown {
  const ofImage = error instanceof ServiceError && error.code === "image_invalid";
  if (!ofImage || !handle.used) return error;
  const message = `the rollout's own commands have broken its sandbox: ${error.message}`;
  return new ServiceError("sandbox_broken", message, { cause: error });
}

import { ServiceError } from "../errors.ts";

export function unknownRollout(id: string): ServiceError {
  return new ServiceError("not_found", `there is no rollout "${id}"`, {
    field: "id",
    mend: "GET /v1/rollouts (rolloutd jobs list) has those that there are",
  });
}

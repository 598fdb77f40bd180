import { ServiceError, toErrorBody } from "../errors.ts";

/** When to ask again where the service is full or stopping. Units: seconds. */
const RETRY_AFTER = { 429: "1", 503: "5", 507: "30" } as const;

/** How every error leaves: as `{"error": ErrorBody}`, with the status of its code. */
export function errorResponse(error: unknown): Response {
  const given = error instanceof ServiceError ? error.status : 500;
  const status = given === 200 ? 500 : given;
  const wait = RETRY_AFTER[status as keyof typeof RETRY_AFTER];
  const headers = wait === undefined ? {} : { "retry-after": wait };
  return Response.json({ error: toErrorBody(error) }, { status, headers });
}

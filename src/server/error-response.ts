import { ServiceError, toErrorBody } from "../errors.ts";

/** How every error leaves: as `{"error": ErrorBody}`, with the status of its code. */
export function errorResponse(error: unknown): Response {
  const status = error instanceof ServiceError ? error.status : 500;
  return Response.json({ error: toErrorBody(error) }, { status: status === 200 ? 500 : status });
}

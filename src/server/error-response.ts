import { type ErrorBody, ServiceError, toErrorBody } from "../errors.ts";

const MAX_MESSAGE = 2000;
const MAX_FIELD = 500;

/** When to ask again where the service is full or stopping. Units: seconds. */
const RETRY_AFTER = { 429: "1", 503: "5", 507: "30" } as const;

/** How every error leaves: as `{"error": ErrorBody}`, with the status of its code. */
export function errorResponse(error: unknown): Response {
  const given = error instanceof ServiceError ? error.status : 500;
  const status = given === 200 ? 500 : given;
  const wait = RETRY_AFTER[status as keyof typeof RETRY_AFTER];
  const headers = wait === undefined ? {} : { "retry-after": wait };
  return Response.json({ error: clipped(toErrorBody(error)) }, { status, headers });
}

/** An error quotes what was sent, which may be a key of megabytes. */
export function clipped(body: ErrorBody): ErrorBody {
  const { message, field } = body;
  const short = (text: string, most: number) =>
    text.length <= most ? text : `${text.slice(0, most).toWellFormed()}…`;
  return {
    ...body,
    message: short(message, MAX_MESSAGE),
    ...(field === undefined ? {} : { field: short(field, MAX_FIELD) }),
  };
}

import { ServiceError } from "../errors.ts";

/** JSON by its names; text, and what curl and the like say of any text. Without a type it is taken for JSON, too. */
const JSON_TEXT =
  /^(application\/([\w.+-]+\+)?json|text\/[\w.+-]+|application\/x-www-form-urlencoded)$/i;
const MEND = "send plain JSON (content-type: application/json), not compressed";

/**
 * Bodies come as JSON and in no other form, so that nothing is ever unpacked that grows.
 *
 * @throws ServiceError `unsupported_body` for one that says it is something else.
 */
export function expectJsonBody(headers: Headers): void {
  const type = headers.get("content-type")?.split(";", 1)[0]?.trim();
  if (type && !JSON_TEXT.test(type)) throw refused("content-type", type);
  const coding = headers.get("content-encoding")?.trim();
  if (coding && coding.toLowerCase() !== "identity") throw refused("content-encoding", coding);
}

function refused(field: string, value: string): ServiceError {
  const message = `a body of ${field} ${value.slice(0, 100)} can't be read`;
  return new ServiceError("unsupported_body", message, { field, mend: MEND });
}

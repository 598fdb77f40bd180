import { ServiceError } from "../errors.ts";

/**
 * JSON by its names alone. Text, forms and a body without a type are what a web page may send to any address without
 * being asked (CORS), and so they are nobody's JSON.
 */
const JSON_TYPE = /^application\/([\w.+-]+\+)?json$/i;
const MEND = "send plain JSON (content-type: application/json), not compressed";

/**
 * Bodies come as JSON and in no other form, so that nothing is ever unpacked that grows.
 *
 * @throws ServiceError `unsupported_body` for one that says it is something else.
 */
export function expectJsonBody(headers: Headers): void {
  const type = headers.get("content-type")?.split(";", 1)[0]?.trim();
  if (!type || !JSON_TYPE.test(type)) throw refused("content-type", type || "(none)");
  const coding = headers.get("content-encoding")?.trim();
  if (coding && coding.toLowerCase() !== "identity") throw refused("content-encoding", coding);
}

function refused(field: string, value: string): ServiceError {
  const message = `a body of ${field} ${value.slice(0, 100)} can't be read`;
  return new ServiceError("unsupported_body", message, { field, mend: MEND });
}

import { ServiceError } from "../errors.ts";

/** Python writes numbers that are not finite as words, which JSON does not have. */
const NOT_FINITE = /[:[,]\s*(NaN|-?Infinity)\s*[,\]}]/;

/** What an engine wrote as JSON. @throws ServiceError `engine_bad_reply`; `token_invariant` for NaN in it. */
export function parseReplyText(shown: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const word = NOT_FINITE.exec(text)?.[1];
    if (word !== undefined) {
      throw new ServiceError("token_invariant", `${shown}: the reply holds ${word}`, { cause });
    }
    throw notJson(shown, cause);
  }
}

/** The same of bytes. */
export function parseReply(shown: string, body: Uint8Array): unknown {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch (cause) {
    throw notJson(shown, cause);
  }
  return parseReplyText(shown, text);
}

function notJson(shown: string, cause: unknown): ServiceError {
  const message = `${shown}: the reply is not JSON: ${(cause as Error).message}`;
  return new ServiceError("engine_bad_reply", message, { cause });
}

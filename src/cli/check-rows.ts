import { ServiceError } from "../errors.ts";
import type { ApiClient } from "./api-client.ts";
import { inParts } from "./in-parts.ts";

/** What a row will be asked as, and where it is from: `rows.jsonl:3`. */
type Asked = { place: string; request: unknown };

/**
 * Has the service look at every row before the first rollout begins, so that a mistake in the last one costs nothing.
 *
 * @throws ServiceError as the service gave it, with the row's place for its number in the request
 */
export async function checkRows(client: ApiClient, asked: Asked[]): Promise<void> {
  for (const part of inParts(asked)) {
    try {
      await client.submit(
        part.map(({ request }) => request),
        { dry_run: "true" },
      );
    } catch (error) {
      throw error instanceof ServiceError ? placed(error, part) : error;
    }
  }
}

/** A request's `rollouts[2]: instance.answer: …` and `rollouts[2].instance.answer: …` */
const NUMBERED = /^rollouts\[(\d+)\](?:: |\.)(?:instance\.)?/;

function placed(error: ServiceError, part: Asked[]): ServiceError {
  const [prefix, index] = NUMBERED.exec(error.message) ?? [];
  const row = part[Number(index)];
  if (prefix === undefined || !row) return error;
  const message = `${row.place}: ${error.message.slice(prefix.length)}`;
  const { field, mend, cause } = error;
  return new ServiceError(error.code, message, { field, mend, cause });
}

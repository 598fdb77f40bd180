import { parseExactJson, withPlainNumbers } from "../lib/exact-json.ts";
import type { TaskKind } from "./task-kind.ts";

type Row = Record<string, unknown>;

/**
 * A row as its kind reads numbers: whole ones beyond 2^53 as BigInt, or rounded as everywhere in JavaScript.
 * @param text the row's JSON, with all digits
 */
export function rowFor(
  { exactNumbers }: Pick<TaskKind<never>, "exactNumbers">,
  row: Row,
  text: string,
): Row {
  return (exactNumbers ? parseExactJson(text) : withPlainNumbers(row, text)) as Row;
}

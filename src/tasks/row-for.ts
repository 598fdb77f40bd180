import { hasLongNumber, parseExactJson } from "../lib/exact-json.ts";
import { parseWithTools } from "../lib/exact-tools.ts";
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
  if (exactNumbers) return parseExactJson(text) as Row;
  return hasLongNumber(text) ? (parseWithTools(text) as Row) : row;
}

import { readFileSync, statSync } from "node:fs";
import { ServiceError } from "../errors.ts";
import { harborRows } from "./harbor-rows.ts";

export type Row = { data_source: string; [field: string]: unknown };

/** Dataset rows of a JSONL file, or of a folder of Harbor tasks. @throws ServiceError `invalid_field` naming the line. */
export function readRows(path: string): Row[] {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return harborRows(path);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new ServiceError("invalid_field", `${path} can't be read: ${(error as Error).message}`);
  }
  const rows: Row[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    rows.push(parseRow(line, `${path}:${index + 1}`));
  }
  if (rows.length > 0) return rows;
  throw new ServiceError("invalid_field", `${path} has no rows`, {
    mend: "put one JSON row a line",
  });
}

function parseRow(line: string, place: string): Row {
  let row: unknown;
  try {
    row = JSON.parse(line);
  } catch (error) {
    const message = `${place} is not valid JSON: ${(error as Error).message}`;
    throw new ServiceError("bad_json", message);
  }
  if (typeof row === "object" && row !== null && "data_source" in row) return row as Row;
  const mend = 'add it, for example "data_source": "deepscaler"';
  throw new ServiceError("invalid_field", `${place} has no data_source`, { mend });
}

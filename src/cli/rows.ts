import { readFileSync, statSync } from "node:fs";
import { ServiceError } from "../errors.ts";
import { parseKeepingDigits } from "../lib/exact-json.ts";
import { parseWithTools } from "../lib/exact-tools.ts";
import { isObject } from "../lib/is-object.ts";
import { harborRows } from "./harbor-rows.ts";

export type Row = { data_source: string; [field: string]: unknown };

/** A row and where it is from, for the error that refuses it: `rows.jsonl:3`. */
export type PlacedRow = { row: Row; place: string };

/**
 * Dataset rows of a file, as JSONL or as one JSON list, or of a folder of Harbor tasks.
 *
 * @param dataSource of rows that name none
 * @throws ServiceError `invalid_field` naming the line.
 */
export function readRows(path: string, dataSource?: string): PlacedRow[] {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return harborRows(path);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? "there is no such file" : message;
    const mend = "name a file with one JSON row a line, as the README's table of rows has them";
    throw new ServiceError("invalid_field", `${path} can't be read: ${why}`, { mend });
  }
  const rows = (text.trimStart().startsWith("[") ? listed : byLine)(text, path).map(
    ({ row, place }) => ({ row: asRow(row, place, dataSource), place }),
  );
  if (rows.length > 0) return rows;
  throw new ServiceError("invalid_field", `${path} has no rows`, {
    mend: "put one JSON row a line",
  });
}

type Found = { row: unknown; place: string };

function byLine(text: string, path: string): Found[] {
  return text.split("\n").flatMap((line, index) => {
    const place = `${path}:${index + 1}`;
    return line.trim() === "" ? [] : [{ row: fromJson(line, place), place }];
  });
}

function listed(text: string, path: string): Found[] {
  const rows = fromJson(text, path) as unknown[];
  return rows.map((row, index) => ({ row, place: `${path}[${index}]` }));
}

function fromJson(text: string, place: string): unknown {
  try {
    return parseWithTools(text, parseKeepingDigits);
  } catch (error) {
    const message = `${place} is not valid JSON: ${(error as Error).message}`;
    const mend = "a row is one line of JSON, or an item of one JSON list";
    throw new ServiceError("bad_json", message, { mend });
  }
}

function asRow(row: unknown, place: string, dataSource: string | undefined): Row {
  if (!isObject(row)) {
    const mend = "a row is a JSON object";
    throw new ServiceError("invalid_field", `${place} is no row`, { mend });
  }
  // Merged datasets write null for what a row does not have.
  const named = row.data_source ?? dataSource;
  if (named !== undefined) return { ...row, data_source: named as string };
  const mend = 'add it, for example "data_source": "deepscaler", or name it with --data-source';
  throw new ServiceError("invalid_field", `${place} has no data_source`, { mend });
}

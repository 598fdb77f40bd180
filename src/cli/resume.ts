import type { Span } from "./file-spans.ts";
import { UsageError } from "./flags.ts";
import { type MadeWith, requireSame } from "./made-with.ts";
import type { PastResult, PastResults } from "./past-results.ts";
import type { PlacedRow } from "./rows.ts";
import type { EndedRollout, PlannedRollout } from "./run-collect.ts";

export type Resumed = {
  /** Results that stand, of what is asked for now. */
  kept: EndedRollout[];
  /** What is still to be run. */
  rest: PlannedRollout[];
  /** Where results are that this run's stand for, by `placeOf`. */
  replaced: Map<string, Span[]>;
};

/**
 * What an earlier run's results leave to do: those of the same row and sample stand that have a reward, or failed by the
 * policy's own doing. Results that are not asked for now have no part in it, and stay in the file.
 *
 * @param past null: nothing
 * @throws UsageError where the file's results are of other rows, or were made otherwise
 */
export function resume(
  path: string,
  past: PastResults | null,
  planned: PlannedRollout[],
  { rows, terms }: { rows: PlacedRow[]; terms: MadeWith },
): Resumed {
  const open = new Map(planned.map((rollout) => [placeOf(rollout), rollout]));
  const kept: EndedRollout[] = [];
  const replaced = new Map<string, Span[]>();
  for (const result of past?.results ?? []) {
    requireSame(madeWithOf(result), terms, `line ${result.line} of --resume ${path}`);
    const row = rows[result.ended.row];
    if (row) requireSameRow(path, result, row);
    const place = placeOf(result.ended);
    if (!stands(result.ended)) {
      replaced.set(place, [...(replaced.get(place) ?? []), result.span]);
    } else if (open.delete(place)) {
      kept.push(row ? { ...result.ended, instance: row.row } : result.ended);
    }
  }
  const used = new Set(past?.results.map(({ ended }) => ended.id));
  return { kept, rest: [...open.values()].map((rollout) => renamed(rollout, used)), replaced };
}

/** With the prefix of an earlier run a server would give its broken rollouts back instead of beginning others. */
function renamed(rollout: PlannedRollout, used: ReadonlySet<string>): PlannedRollout {
  const { request } = rollout;
  let id = request.id;
  for (let number = 2; used.has(id); number++) id = `${request.id}.${number}`;
  return { ...rollout, request: { ...request, id } };
}

/** The model is known when the service is. @throws UsageError */
export function requireSameModel(path: string, past: PastResults, terms: MadeWith): void {
  const now = { model: terms.model };
  for (const result of past.results) {
    const { model } = madeWithOf(result);
    requireSame({ model }, now, `line ${result.line} of --resume ${path}`);
  }
}

function madeWithOf({ ended }: PastResult): MadeWith {
  return ended.made_with;
}

function requireSameRow(path: string, { ended, line }: PastResult, { row, place }: PlacedRow) {
  const past = ended.instance;
  if (Bun.deepEquals(past, row)) return;
  const fields = new Set([...Object.keys(past), ...Object.keys(row)]);
  const other = [...fields].filter((name) => !Bun.deepEquals(past[name], row[name]));
  const why = `line ${line} of --resume ${path} is of another row ${ended.row} than ${place} (${other.join(", ")})`;
  const mend =
    "give the rows that it was made from, in their order (fewer, or more at the end, will do), or write to another file with --out";
  throw new UsageError(`${why}; ${mend}`);
}

export function placeOf({ row, sample }: { row: number; sample: number }): string {
  return `${row}-${sample}`;
}

function stands({ reward, error }: EndedRollout): boolean {
  return reward !== null || error?.boundary === "policy";
}

import type { BatchRow } from "../store/tables.ts";
import { freeId } from "./free-id.ts";
import type { GroupSubmission } from "./group-parts.ts";
import type { BatchParts, BatchSubmission } from "./live-batch.ts";

/** Puts the groups of a batch's further instances behind those that it has. Inside a tick. */
export function addGroups(
  { store, groups }: Pick<BatchParts, "store" | "groups">,
  row: BatchRow,
  submissions: GroupSubmission[],
): void {
  let position = store.batches.nextPosition(row.seq);
  for (const submission of submissions) {
    const taken = (id: string) => store.groups.byId(id) !== null;
    const id = freeId(`${row.id}-${position}`, taken);
    const { template } = submission;
    const labels = { batch: row.id, ...template.row.labels };
    const labelled = { ...template, row: { ...template.row, labels } };
    const place = { seq: row.seq, position: position++ };
    groups.insert({ ...submission, id, template: labelled }, place);
  }
}

/**
 * A batch that is given nothing of its own goes on in the source of the one that it carries on; so does the next of a
 * series that names the same source again, until that has been read to its end.
 */
export function sourceOf(
  { source, groups, open, series }: Pick<BatchSubmission, "source" | "groups" | "open" | "series">,
  from: BatchRow | null,
): string | null {
  const isAgain = series !== null && from?.source != null && !from.closed;
  if (isAgain && JSON.parse(from.source ?? "").address === source) return from.source;
  if (source !== null) return JSON.stringify({ address: source, offset: 0, line: 0 });
  return groups.length > 0 || open || !from || from.closed ? null : from.source;
}

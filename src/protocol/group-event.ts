import type { ErrorBody } from "../errors.ts";
import type { GroupEvent } from "../store/group-events.ts";

/** The end of a group or batch as a reader of events sees it; the rest is at its own address. */
export type GroupEventView = {
  id: string;
  state: GroupEvent["state"];
  error: ErrorBody | null;
  /** Of a group only; `delivered` is its place among those that its batch has handed over. */
  batch?: string | null;
  informative?: boolean | null;
  delivered?: number | null;
};

export function viewGroupEvent(event: GroupEvent): GroupEventView {
  const { id, state, batch, informative, delivered } = event;
  const view = { id, state, error: event.error === null ? null : JSON.parse(event.error) };
  if (event.event === "batch_finished") return view;
  const known = informative === null ? null : informative === 1;
  return { ...view, batch, informative: known, delivered };
}

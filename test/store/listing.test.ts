import { expect, test } from "bun:test";
import type { State } from "../../src/jobs/job.ts";
import type { JobEvent } from "../../src/jobs/transitions.ts";
import type { ListFilter } from "../../src/store/listing.ts";
import { Store } from "../../src/store/store.ts";
import { CANCEL, STARTED, storeJob, TO_THE_END } from "../support/jobs.ts";
import { tempDir } from "../support/temp-dir.ts";

const EVENTS: Partial<Record<State, JobEvent[]>> = {
  pending: [],
  active: [STARTED],
  cancelled: [CANCEL],
  succeeded: TO_THE_END,
};
const STATES = Object.keys(EVENTS) as State[];

test("every filter gives what a look at each job gives, page by page, in both orders", () => {
  using dir = tempDir();
  using store = new Store(dir.path);
  const all: { id: string; state: State; kind: string; labels: Record<string, string> }[] = [];
  store.transaction(() => {
    for (let i = 0; i < 120; i++) {
      const state = STATES[i % 4] as State;
      const kind = i % 3 === 0 ? "x" : "y";
      const labels: Record<string, string> = { step: String(i % 5) };
      if (i % 2) labels.odd = "yes";
      storeJob(store, `j${i}`, EVENTS[state] ?? [], { taskKind: kind, labels });
      all.push({ id: `j${i}`, state, kind, labels });
    }
  });
  const states: (State[] | undefined)[] = [
    undefined,
    ["pending"],
    ["active", "pending"],
    ["cancelled"],
    ["succeeded", "active"],
  ];
  const labelSets: (Record<string, string> | undefined)[] = [
    undefined,
    { step: "3" },
    { step: "1", odd: "yes" },
    { none: "x" },
  ];
  for (const order of ["submitted", "finished"] as const) {
    for (const chosen of states) {
      for (const taskKind of [undefined, "x"]) {
        for (const labels of labelSets) {
          const filter = {
            ...(chosen ? { states: chosen } : {}),
            ...(taskKind ? { taskKind } : {}),
            ...(labels ? { labels } : {}),
          };
          const expected = all.filter(
            (job) =>
              (order === "submitted" || ["cancelled", "succeeded"].includes(job.state)) &&
              (!chosen || chosen.includes(job.state)) &&
              (!taskKind || job.kind === taskKind) &&
              Object.entries(labels ?? {}).every(([name, value]) => job.labels[name] === value),
          );
          expect(pages(store, { ...filter, order })).toEqual(expected.map(({ id }) => id));
        }
      }
    }
  }
});

test("a page looks at a bounded number of jobs, and says that there are more", () => {
  using dir = tempDir();
  using store = new Store(dir.path);
  store.transaction(() => {
    for (let i = 0; i < 2500; i++) storeJob(store, `j${i}`, [CANCEL]);
    storeJob(store, "last", [CANCEL], { taskKind: "rare" });
  });
  const filter = { taskKind: "rare", limit: 5, order: "finished" } as const;
  const first = store.list({ ...filter, after: 0 });
  expect(first).toEqual({ rows: [], next: 2000, more: true });
  const second = store.list({ ...filter, after: first.next });
  expect([second.rows.map(({ id }) => id), second.more]).toEqual([["last"], false]);
});

function pages(store: Store, filter: Omit<ListFilter, "limit" | "after">): string[] {
  const ids: string[] = [];
  let after = 0;
  for (let more = true; more; ) {
    const page = store.list({ ...filter, limit: 7, after });
    ids.push(...page.rows.map(({ id }) => id));
    ({ next: after, more } = page);
  }
  return ids;
}

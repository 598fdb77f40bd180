import { expect, test } from "bun:test";
import { Suspects } from "../../src/pipeline/suspects.ts";

const MAX_CRASHES = 2;

/** Unfinished jobs by how often they crashed, and who of `ids` may become active when they try one after another. */
function setup(crashes: Record<string, number>) {
  const found = Object.entries(crashes).map(([id, crashes]) => ({ id, crashes }));
  const suspects = new Suspects(MAX_CRASHES, found);
  const joining = (ids: string[]) => {
    const active = new Map<string, true>();
    for (const id of ids) if (suspects.mayJoin(id, active)) active.set(id, true);
    return [...active.keys()];
  };
  return { suspects, joining };
}

const many = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

test("jobs that nothing is known of, and those with fewer crashes, join whoever is active", () => {
  const once = many("once", 20);
  const { suspects, joining } = setup({});
  for (const id of once) suspects.note({ id, state: "pending", crashes: 1 });
  expect(joining([...once, ...many("fresh", 20)])).toHaveLength(40);
  expect(suspects.alone()).toEqual([]);
});

test("of those with as many crashes as a job survives eight are active together, and others beside them", () => {
  const twice = many("twice", 20);
  const { joining } = setup(Object.fromEntries(twice.map((id) => [id, 2])));
  const fresh = many("fresh", 20);
  expect(joining([...twice, ...fresh])).toEqual([...twice.slice(0, 8), ...fresh]);
});

test("one with more crashes joins nobody, until it is over", () => {
  const { suspects, joining } = setup({ a: 3, b: 2 });
  expect([suspects.alone(), joining(["a", "b", "c"])]).toEqual([["a"], ["b", "c"]]);
  suspects.note({ id: "a", state: "succeeded", crashes: 3 });
  expect([suspects.alone(), joining(["a", "b"])]).toEqual([[], ["a", "b"]]);
});

test("a limit of 0 puts each alone that has been in a crash", () => {
  const suspects = new Suspects(0, []);
  suspects.note({ id: "a", state: "pending", crashes: 1 });
  suspects.note({ id: "b", state: "pending", crashes: 0 });
  expect(suspects.alone()).toEqual(["a"]);
});

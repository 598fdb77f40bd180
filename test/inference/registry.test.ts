import { describe, expect, test } from "bun:test";
import { BackendRegistry } from "../../src/inference/registry.ts";

function backend(id: string) {
  return { id, url: `http://${id}/v1`, model: "m" };
}

function setup(...ids: string[]) {
  const registry = new BackendRegistry();
  for (const id of ids) registry.add(backend(id));
  return {
    registry,
    take: (count: number) => Array.from({ length: count }, () => registry.acquire(null).id),
    loads: () => registry.list().map(({ backend: { id }, inFlight }) => [id, inFlight]),
  };
}

describe("a new trajectory", () => {
  test("goes where the fewest are", () => {
    const t = setup("a", "b", "c");
    for (const id of ["a", "a", "b"]) t.registry.acquire(id);
    expect(t.take(3).sort()).toEqual(["b", "c", "c"]);
    expect(t.loads()).toEqual([
      ["a", 2],
      ["b", 2],
      ["c", 2],
    ]);
  });

  test("goes to each in turn where all have the same", () => {
    const t = setup("a", "b", "c");
    const taken = Array.from({ length: 6 }, () => {
      const [id] = t.take(1) as [string];
      t.registry.release(id);
      return id;
    });
    expect(taken).toEqual(["a", "b", "c", "a", "b", "c"]);
  });

  test("of a burst is spread evenly", () => {
    const t = setup("a", "b", "c");
    t.take(30);
    expect(t.loads()).toEqual([
      ["a", 10],
      ["b", 10],
      ["c", 10],
    ]);
  });

  test("can't be placed where there is no backend, which can be asked before", () => {
    const t = setup();
    expect(t.registry.available()).toBe(false);
    expect(() => t.take(1)).toThrow("no backend to acquire");
    t.registry.add(backend("a"));
    expect([t.registry.available(), t.registry.acquire(null)]).toEqual([true, backend("a")]);
  });
});

describe("a trajectory that has a backend", () => {
  test("stays on it, however many others are there", () => {
    const t = setup("a", "b");
    for (let i = 0; i < 5; i++) expect(t.registry.acquire("a").id).toBe("a");
    expect(t.loads()).toEqual([
      ["a", 5],
      ["b", 0],
    ]);
  });

  test("gets another where its own was removed", () => {
    const t = setup("a", "b");
    t.registry.remove("a");
    expect(t.registry.acquire("a").id).toBe("b");
  });
});

describe("a backend that is removed", () => {
  test("gets no new trajectory, is listed no more, and is removed once only", () => {
    const t = setup("a", "b");
    t.registry.acquire("a");
    expect([t.registry.remove("a"), t.registry.remove("a"), t.registry.remove("x")]).toEqual([
      true,
      false,
      false,
    ]);
    expect([t.take(2), t.loads()]).toEqual([["b", "b"], [["b", 2]]]);
    t.registry.remove("b");
    expect(t.registry.available()).toBe(false);
  });

  test("counts what lives on it when it is added again, at its new address", () => {
    const t = setup("a");
    t.registry.acquire("a");
    t.registry.acquire("a");
    t.registry.remove("a");
    t.registry.release("a");
    const moved = { ...backend("a"), url: "http://elsewhere/v1" };
    t.registry.add(moved);
    expect([t.loads(), t.registry.acquire("a")]).toEqual([[["a", 1]], moved]);
  });

  test("starts from nothing when it is added again after its last trajectory has left", () => {
    const t = setup("a");
    t.registry.acquire("a");
    t.registry.remove("a");
    t.registry.release("a");
    // A second release of the same trajectory must not make room that is not there.
    t.registry.release("a");
    t.registry.add(backend("a"));
    expect(t.loads()).toEqual([["a", 0]]);
  });
});

test("a backend that is added again while it works keeps its count", () => {
  const t = setup("a", "b");
  t.registry.acquire("a");
  t.registry.add({ ...backend("a"), model: "other" });
  expect(t.loads()).toEqual([
    ["a", 1],
    ["b", 0],
  ]);
  expect(t.registry.acquire("a").model).toBe("other");
});

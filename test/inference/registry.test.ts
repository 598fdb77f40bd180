import { describe, expect, test } from "bun:test";
import { callFailed, ejected } from "../../src/inference/balance/health.ts";
import { BackendRegistry } from "../../src/inference/registry.ts";
import { arrival } from "../support/arrival.ts";

const HEALTH = { failuresInARow: 1, ejectMs: 10, maxEjectMs: 100 };

function backend(id: string) {
  return { id, url: `http://${id}/v1`, model: "m" };
}

function setup(...ids: string[]) {
  const registry = new BackendRegistry({ clock: { nowMs: () => 0 } });
  for (const id of ids) registry.add(backend(id));
  const on = (preferredId: string | null) => {
    const given = arrival({ preferredId });
    return { jobId: given.jobId, backend: registry.acquire(given) };
  };
  return {
    registry,
    on,
    take: (count: number) => Array.from({ length: count }, () => on(null).backend.id),
    loads: () => registry.list().map(({ backend: { id }, live }) => [id, live]),
    entry: (id: string) => registry.get(id) as NonNullable<ReturnType<typeof registry.get>>,
  };
}

describe("a new trajectory", () => {
  test("goes where the least work is", () => {
    const t = setup("a", "b", "c");
    for (const id of ["a", "a", "b"]) t.on(id);
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
      const { jobId, backend } = t.on(null);
      t.registry.release(jobId, false);
      return backend.id;
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
    expect([t.registry.available(), t.on(null).backend]).toEqual([true, backend("a")]);
  });

  test("goes to no backend that was taken out, and its decision says why", () => {
    const t = setup("a", "b");
    t.entry("a").health = ejected(t.entry("a").health, "it answered 500", 0, HEALTH);
    expect(t.take(2)).toEqual(["b", "b"]);
    expect(t.registry.decisions.last(1)[0]?.excluded).toEqual([
      { id: "a", why: "it is not healthy: it answered 500" },
    ]);
  });

  test("is one of few on a backend that is tried again", () => {
    const t = setup("a");
    const failure = { unreachable: false, why: "no" };
    const failed = callFailed(t.entry("a").health, failure, 0, HEALTH);
    t.entry("a").health = { ...failed, state: "trial" };
    t.on(null);
    expect(t.registry.available()).toBe(false);
  });
});

describe("a trajectory that has a backend", () => {
  test("stays on it, however many others are there", () => {
    const t = setup("a", "b");
    for (let i = 0; i < 5; i++) expect(t.on("a").backend.id).toBe("a");
    expect(t.loads()).toEqual([
      ["a", 5],
      ["b", 0],
    ]);
  });

  test("gets another where its own was removed", () => {
    const t = setup("a", "b");
    t.registry.remove("a");
    expect(t.on("a").backend.id).toBe("b");
  });

  test("weighs what it has and is expected to sample, and nothing once it is over", () => {
    const t = setup("a");
    const { jobId } = t.on(null);
    const trajectory = t.registry.trajectory(jobId);
    if (trajectory) t.registry.advance(trajectory, 900, 100);
    const { contextTokens, expectedTokens } = t.entry("a");
    expect([contextTokens, expectedTokens > 0]).toEqual([900, true]);
    t.registry.release(jobId, true);
    expect(t.entry("a")).toMatchObject({ live: 0, contextTokens: 0, expectedTokens: 0 });
  });

  test("leaves a backend that has much more to read, where that is allowed, and the log says so", () => {
    for (const moves of [false, true]) {
      const registry = new BackendRegistry({ moves, clock: { nowMs: () => 0 } });
      for (const id of ["a", "b"]) registry.add(backend(id));
      const [first, second] = ["a", "a"].map((preferredId) => {
        const given = arrival({ preferredId });
        registry.acquire(given);
        return registry.trajectory(given.jobId);
      });
      if (!first || !second) throw new Error("they were just placed");
      for (const trajectory of [first, second]) {
        registry.advance(trajectory, 30_000, 1_000);
        trajectory.turnsHere = 4;
      }
      expect(registry.relieve(first)?.backend.id ?? null).toBe(moves ? "b" : null);
      expect(registry.relieve(second)).toBeNull();
      expect(registry.list().map(({ contextTokens }) => contextTokens)).toEqual(
        moves ? [30_000, 30_000] : [60_000, 0],
      );
      expect(registry.decisions.last(1)).toMatchObject(
        moves
          ? [{ jobId: first.jobId, from: "a", backendId: "b", scores: [{ score: 60_000 }, {}] }]
          : [],
      );
    }
  });

  test("moves with all its weight, and the log says from where and why", () => {
    const t = setup("a", "b");
    const { jobId } = t.on("a");
    const trajectory = t.registry.trajectory(jobId);
    if (!trajectory) throw new Error("it was just placed");
    t.registry.advance(trajectory, 500, 10);
    t.registry.drain("a", "move");
    expect(t.registry.move(trajectory, "a is drained", [])?.id).toBe("b");
    expect([t.entry("a").contextTokens, t.entry("b").contextTokens]).toEqual([0, 500]);
    expect(t.registry.decisions.last(1)).toMatchObject([
      { jobId, from: "a", backendId: "b", cause: "a is drained" },
    ]);
    expect(t.registry.move(trajectory, "no reason", ["b"])).toBeNull();
  });
});

describe("a backend that is removed", () => {
  test("gets no new trajectory, is listed no more, and is removed once only", () => {
    const t = setup("a", "b");
    t.on("a");
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
    t.on("a");
    const { jobId } = t.on("a");
    t.registry.remove("a");
    t.registry.release(jobId, false);
    const moved = { ...backend("a"), url: "http://elsewhere/v1" };
    t.registry.add(moved);
    expect([t.loads(), t.on("a").backend]).toEqual([[["a", 1]], moved]);
  });

  test("starts from nothing when it is added again after its last trajectory has left", () => {
    const t = setup("a");
    const { jobId } = t.on("a");
    t.registry.remove("a");
    t.registry.release(jobId, false);
    // A second release of the same trajectory must not make room that is not there.
    t.registry.release(jobId, false);
    t.registry.add(backend("a"));
    expect(t.loads()).toEqual([["a", 0]]);
  });
});

test("a backend that is drained is listed, and open again once it is added anew", () => {
  const t = setup("a");
  t.registry.drain("a", "finish");
  expect([t.registry.available(), t.loads()]).toEqual([false, [["a", 0]]]);
  t.registry.add(backend("a"));
  expect(t.registry.available()).toBe(true);
});

test("a backend that is added again while it works keeps its count", () => {
  const t = setup("a", "b");
  t.on("a");
  t.registry.add({ ...backend("a"), model: "other" });
  expect(t.loads()).toEqual([
    ["a", 1],
    ["b", 0],
  ]);
  expect(t.on("a").backend.model).toBe("other");
});

describe("a memory that contexts have outgrown", () => {
  function crowded(moreToCome: boolean) {
    let nowMs = 0;
    const clock = { nowMs: () => nowMs };
    const registry = new BackendRegistry({ clock, moreToCome: () => moreToCome });
    registry.add(backend("a"));
    const begin = (contextTokens: number, sampledTokens: number) => {
      const { jobId } = arrival();
      registry.acquire(arrival({ jobId }));
      const trajectory = registry.trajectory(jobId) as NonNullable<
        ReturnType<typeof registry.trajectory>
      >;
      registry.advance(trajectory, contextTokens, sampledTokens);
      registry.wants(trajectory);
      return trajectory;
    };
    const pass = (ms: number) => {
      nowMs += ms;
    };
    const [elder, younger] = [begin(8_000, 3_000), begin(4_000, 100)];
    const entry = registry.get("a");
    if (entry) entry.kvTokens = 10_000;
    return { registry, elder, younger, pass };
  }

  test("makes the youngest wait while others wait to begin, or have just begun", () => {
    for (const moreToCome of [true, false]) {
      const { registry, elder, younger } = crowded(moreToCome);
      expect([elder, younger].map((one) => registry.isHeld(one))).toEqual([true, false]);
    }
  });

  test("makes who has sampled most wait when no more are to begin, and says so once", () => {
    const { registry, elder, younger, pass } = crowded(false);
    pass(30_000);
    for (let look = 0; look < 2; look++) {
      expect([elder, younger].map((one) => registry.isHeld(one))).toEqual([false, true]);
    }
    const said = registry.decisions.last(9).filter(({ jobId, from }) => {
      return jobId === elder.jobId && from !== null;
    });
    expect(said).toEqual([
      expect.objectContaining({
        ...{ from: "a", backendId: "a", cause: "contexts have outgrown the memory of a" },
        reason: expect.stringContaining("sampled less"),
      }),
    ]);
    registry.rests(younger);
    registry.release(younger.jobId, true);
    expect(registry.isHeld(elder)).toBe(true);
  });

  test("is there first for who has waited for a quarter of an hour", () => {
    const { registry, elder, younger, pass } = crowded(false);
    registry.goes(younger);
    pass(899_999);
    expect(registry.isHeld(elder)).toBe(false);
    pass(1);
    registry.rests(younger);
    registry.wants(younger);
    expect([elder, younger].map((one) => registry.isHeld(one))).toEqual([true, false]);
    expect(registry.waitedMs(elder)).toBe(900_000);
    registry.goes(elder);
    pass(1_000);
    expect(registry.waitedMs(elder)).toBe(900_000);
  });
});

import { describe, expect, test } from "bun:test";
import {
  type BackendLoad,
  type Newcomer,
  type PolicyName,
  place,
} from "../../../src/inference/balance/placement.ts";

function load(id: string, fields: Partial<BackendLoad> = {}): BackendLoad {
  return {
    ...{ id, live: 0, contextTokens: 0, expectedTokens: 0, foreign: 0, kvUse: null },
    ...{ sameNode: false, assigned: 0, siblings: 0 },
    ...fields,
  };
}

const NEWCOMER: Newcomer = { key: "j", group: "g", ordinal: 0, expectedTokens: 1_000 };

function chosen(pool: BackendLoad[], policy: PolicyName = "least-work", cursor = 0): string {
  return place(policy, pool, NEWCOMER, cursor).backendId;
}

/** Which backends are chosen as the cursor goes on. */
function inTurn(pool: BackendLoad[], turns = 4): string {
  return Array.from({ length: turns }, (_, cursor) => chosen(pool, "least-work", cursor)).join("");
}

describe("least-work", () => {
  test("goes by the tokens that are expected yet, not by the number of trajectories", () => {
    const pool = [
      load("a", { live: 1, expectedTokens: 9_000 }),
      load("b", { live: 3, expectedTokens: 3_000 }),
    ];
    expect(chosen(pool)).toBe("b");
  });

  test("takes contexts for work as well, a token for a part of one", () => {
    const long = { live: 1, expectedTokens: 1_000 };
    const pool = [
      load("a", { ...long, contextTokens: 30_000 }),
      load("b", { ...long, contextTokens: 2_000 }),
    ];
    expect(chosen(pool)).toBe("b");
    expect(
      chosen([load("a", { contextTokens: 5_000 }), load("b", { expectedTokens: 5_000 })]),
    ).toBe("a");
  });

  test("sees requests that are none of ours", () => {
    expect(chosen([load("a", { foreign: 3 }), load("b", { expectedTokens: 2_000 })])).toBe("b");
  });

  test("keeps away from memory that is nearly full, and only from that", () => {
    const pool = (kvUse: number) => [
      load("a", { expectedTokens: 1_000, kvUse }),
      load("b", { expectedTokens: 1_500, kvUse: 0.2 }),
    ];
    expect([chosen(pool(0.6)), chosen(pool(0.95))]).toEqual(["a", "b"]);
  });

  test("chooses where rounding has left less than nothing to do", () => {
    expect(chosen([load("a", { expectedTokens: -1e-13 })])).toBe("a");
  });

  test("takes those with the same work in turn", () => {
    expect(inTurn([load("a"), load("b")])).toBe("abab");
    const near = [load("a", { expectedTokens: 10_000 }), load("b", { expectedTokens: 10_050 })];
    expect(inTurn(near)).toBe("abab");
  });

  test("goes to this node first among those with the same work, but not for less work elsewhere", () => {
    expect(inTurn([load("a"), load("b", { sameNode: true })])).toBe("bbbb");
    expect(chosen([load("a"), load("b", { sameNode: true, expectedTokens: 500 })])).toBe("a");
  });

  test("keeps siblings together, as they share a prompt, while that costs hardly any balance", () => {
    const siblings = (expectedTokens: number) => [
      load("a", { expectedTokens: 10_000, siblings: 1 }),
      load("b", { expectedTokens, siblings: 2 }),
    ];
    expect([chosen(siblings(11_900)), chosen(siblings(12_100))]).toEqual(["b", "a"]);
  });

  test("goes on evenly where sums have left a little less than nothing", () => {
    expect(inTurn([load("a", { expectedTokens: -1e-9 }), load("b")])).toBe("abab");
  });

  test("says why, with the scores of all", () => {
    const pool = [load("a", { expectedTokens: 4_000 }), load("b", { expectedTokens: 2_000 })];
    expect(place("least-work", pool, NEWCOMER, 0)).toEqual({
      backendId: "b",
      policy: "least-work",
      reason: "it has the least work",
      scores: [
        { id: "a", score: 4_000 },
        { id: "b", score: 2_000 },
      ],
    });
  });
});

describe("for comparison", () => {
  test("min-heap goes by the trajectories ever assigned, whatever became of them", () => {
    const pool = [load("a", { assigned: 3 }), load("b", { assigned: 2, expectedTokens: 99_999 })];
    expect(chosen(pool, "min-heap")).toBe("b");
  });

  test("round-robin goes by the order of starts and static by the order of submission", () => {
    const pool = [load("b"), load("a"), load("c")];
    expect([0, 1, 2, 3].map((cursor) => chosen(pool, "round-robin", cursor))).toEqual([
      ...["a", "b", "c", "a"],
    ]);
    const at = (ordinal: number) =>
      place("static", pool, { ...NEWCOMER, ordinal }, 99 - ordinal).backendId;
    expect([0, 1, 2, 3].map(at)).toEqual(["a", "b", "c", "a"]);
  });

  test("consistent-hash keeps a group on its backend when others come and go", () => {
    const names = ["a", "b", "c", "d", "e"];
    const of = (group: string, ids: string[]) => {
      const pool = ids.map((id) => load(id));
      return place("consistent-hash", pool, { ...NEWCOMER, group }, 0).backendId;
    };
    const groups = Array.from({ length: 300 }, (_, index) => `group-${index}`);
    const before = groups.map((group) => of(group, names));
    const after = groups.map((group) => of(group, names.slice(0, 4)));
    const moved = groups.filter((_, index) => before[index] !== after[index]);
    expect(moved.length).toBe(before.filter((id) => id === "e").length);
    for (const name of names) {
      const count = before.filter((id) => id === name).length;
      expect(count).toBeWithin(30, 100);
    }
  });
});

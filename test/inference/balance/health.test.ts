import { describe, expect, test } from "bun:test";
import {
  allowance,
  callFailed,
  callSucceeded,
  type Health,
  healthy,
  probed,
} from "../../../src/inference/balance/health.ts";

const LIMITS = { failuresInARow: 5, ejectMs: 1_000, maxEjectMs: 8_000 };
const ANSWERED_500 = { unreachable: false, why: "it answered 500" };
const REFUSED = { unreachable: true, why: "connection refused" };

function failing(times: number, failure = ANSWERED_500, from = healthy(0)): Health {
  let health = from;
  for (let index = 0; index < times; index++) health = callFailed(health, failure, 0, LIMITS);
  return health;
}

describe("a backend is taken out", () => {
  test("after so many failures in a row, and sooner where nothing answers", () => {
    expect([failing(4).state, failing(5).state]).toEqual(["healthy", "ejected"]);
    expect([failing(1, REFUSED).state, failing(2, REFUSED).state]).toEqual(["healthy", "ejected"]);
    expect(allowance(failing(5))).toBe(0);
  });

  test("when most calls fail, though never many in a row", () => {
    let health = healthy(0);
    for (let index = 0; index < 60 && health.state === "healthy"; index++) {
      health = index % 4 === 3 ? callSucceeded(health, 0) : failing(1, ANSWERED_500, health);
    }
    expect(health.state).toBe("ejected");
    let good = healthy(0);
    for (let index = 0; index < 60; index++) {
      good = index % 4 !== 3 ? callSucceeded(good, 0) : failing(1, ANSWERED_500, good);
    }
    expect(good.state).toBe("healthy");
  });

  test("for longer each time, up to a limit, and what ends late does not count", () => {
    let health = failing(5);
    const waits: number[] = [];
    for (let round = 0; round < 5; round++) {
      waits.push(health.probeAtMs);
      health = probed(health, "still no", 0, LIMITS);
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 8_000]);
    expect(callSucceeded(health, 0)).toBe(health);
    expect(failing(1, REFUSED, health)).toBe(health);
  });
});

describe("a backend comes back", () => {
  test("by a trickle that grows with each call that goes well", () => {
    let health = probed(failing(5), null, 0, LIMITS);
    const allowed: number[] = [];
    while (health.state === "trial") {
      allowed.push(allowance(health));
      health = callSucceeded(health, 0);
    }
    expect([allowed, health.state, allowance(health)]).toEqual([
      [1, 2, 4],
      "healthy",
      Number.POSITIVE_INFINITY,
    ]);
  });

  test("and is out again, for longer, at its first failure on trial", () => {
    const trial = probed(failing(5), null, 0, LIMITS);
    expect(failing(1, ANSWERED_500, trial)).toMatchObject({ state: "ejected", probeAtMs: 2_000 });
  });

  test("as if nothing had been, after long enough", () => {
    let health = probed(failing(5), null, 0, LIMITS);
    for (let index = 0; index < 3; index++) health = callSucceeded(health, 0);
    for (let index = 0; index < 5; index++) {
      health = callFailed(health, ANSWERED_500, 100_000, LIMITS);
    }
    expect(health.probeAtMs).toBe(101_000);
  });
});

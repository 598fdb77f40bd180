/**
 * `healthy` takes turns; `ejected` takes none until a probe went well; `trial` takes a few, and more with
 * each that succeeds.
 */
export type Health = {
  state: "healthy" | "ejected" | "trial";
  failuresInARow: number;
  /** Of the last calls, the newest counting most; with how many it is of. */
  failureShare: number;
  calls: number;
  /** In the recent past; each is for longer than the one before. */
  ejections: number;
  sinceMs: number;
  /** When to probe; only where it is ejected. */
  probeAtMs: number;
  /** Turns at once in a trial. */
  trickle: number;
  why: string | null;
};

export type HealthLimits = {
  /** So many failed calls in a row eject. */
  failuresInARow: number;
  /** The first ejection's time; it doubles with each further one. Units: milliseconds. */
  ejectMs: number;
  maxEjectMs: number;
};

/** A connection that is refused says more than an answer that is wrong. */
const UNREACHABLE_IN_A_ROW = 2;
/** Above this share of failures, of at least so many calls, it is ejected too. */
const MAX_FAILURE_SHARE = 0.5;
const MIN_CALLS = 20;
const NEWEST_WEIGHT = 0.05;
/** From so many turns at once on a trial is over. */
const TRIAL_TURNS = 8;
/** Health for as many times the longest ejection is a fresh start. */
const FORGIVEN_AFTER = 2;

export function healthy(nowMs: number): Health {
  return {
    state: "healthy",
    failuresInARow: 0,
    failureShare: 0,
    calls: 0,
    ejections: 0,
    sinceMs: nowMs,
    probeAtMs: 0,
    trickle: 1,
    why: null,
  };
}

/** How many turns it may have at once. */
export function allowance({ state, trickle }: Health): number {
  if (state === "healthy") return Number.POSITIVE_INFINITY;
  return state === "trial" ? trickle : 0;
}

export function callSucceeded(health: Health, nowMs: number): Health {
  // The end of a call from before says nothing about now.
  if (health.state === "ejected") return health;
  const next = counted(health, 0);
  if (health.state === "healthy") return next;
  const trickle = health.trickle * 2;
  if (trickle < TRIAL_TURNS) return { ...next, trickle };
  return { ...next, state: "healthy", sinceMs: nowMs, why: null };
}

/** @param unreachable there was no answer at all */
export function callFailed(
  health: Health,
  failure: { unreachable: boolean; why: string },
  nowMs: number,
  limits: HealthLimits,
): Health {
  if (health.state === "ejected") return health;
  const next = counted(health, 1);
  const inARow = failure.unreachable
    ? Math.min(UNREACHABLE_IN_A_ROW, limits.failuresInARow)
    : limits.failuresInARow;
  const often = next.calls >= MIN_CALLS && next.failureShare > MAX_FAILURE_SHARE;
  if (health.state === "healthy" && next.failuresInARow < inARow && !often) return next;
  return ejected(next, failure.why, nowMs, limits);
}

/** It is to be probed before it gets another turn. */
export function ejected(health: Health, why: string, nowMs: number, limits: HealthLimits): Health {
  const forgiven =
    health.state === "healthy" && nowMs - health.sinceMs > FORGIVEN_AFTER * limits.maxEjectMs;
  const ejections = forgiven ? 1 : health.ejections + 1;
  const waitMs = Math.min(limits.maxEjectMs, limits.ejectMs * 2 ** Math.min(20, ejections - 1));
  const fresh = { failuresInARow: 0, failureShare: 0, calls: 0, trickle: 1 };
  const times = { sinceMs: nowMs, probeAtMs: nowMs + waitMs };
  return { ...health, ...fresh, state: "ejected", ejections, ...times, why };
}

/** A probe of an ejected one: it comes back by a trickle, or waits for longer. */
export function probed(
  health: Health,
  problem: string | null,
  nowMs: number,
  limits: HealthLimits,
): Health {
  if (health.state !== "ejected") return health;
  if (problem === null) return { ...health, state: "trial", trickle: 1, sinceMs: nowMs };
  return { ...ejected(health, problem, nowMs, limits), sinceMs: health.sinceMs };
}

function counted(health: Health, failed: 0 | 1): Health {
  const { failureShare } = health;
  return {
    ...health,
    calls: health.calls + 1,
    failuresInARow: failed === 1 ? health.failuresInARow + 1 : 0,
    failureShare: failureShare + NEWEST_WEIGHT * (failed - failureShare),
  };
}

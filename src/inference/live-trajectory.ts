/** A trajectory that lives on a backend, as balancing sees it. */
export type Trajectory = {
  readonly jobId: string;
  readonly ordinal: number;
  readonly group: string | null;
  backendId: string;
  /** Of its first prompt. */
  firstContext: number;
  contextTokens: number;
  sampledTokens: number;
  expectedTokens: number;
  /** Calls on this backend. */
  turnsHere: number;
  /** Whether it wants or has a call, and when that was last so. */
  inUse: boolean;
  usedMs: number;
  /** Whether its turn waits for room in its backend's memory. */
  isOut: boolean;
  /** How long its turns have waited up to `waitsSinceMs`, since when one waits; null where none does. */
  waitedMs: number;
  waitsSinceMs: number | null;
};

/** A trajectory that needs a backend. `preferredId` is where it was before a restart. */
export type Arrival = Pick<Trajectory, "jobId" | "ordinal" | "group"> & {
  preferredId: string | null;
};

/** A trajectory that has no backend yet. Its first prompt is not known before its first call. */
export function newcomer(
  given: Omit<Arrival, "preferredId">,
  expectedTokens: number,
  nowMs: number,
): Omit<Trajectory, "backendId"> {
  return {
    ...given,
    expectedTokens,
    ...{ firstContext: 0, contextTokens: 0, sampledTokens: 0, turnsHere: 0 },
    ...{ inUse: false, usedMs: nowMs, isOut: false, waitedMs: 0, waitsSinceMs: null },
  };
}

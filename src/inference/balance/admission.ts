/** How many turns a backend may have at once, and what it is judged by. */
export type Admission = {
  limit: number;
  /** Whether the limit held anybody back since the last look. */
  reached: boolean;
  /** Looks for which the limit stays after a cut. */
  rest: number;
};

/** What an engine said of itself at a look, and since the one before. */
export type EngineSample = {
  /** Calls of ours that it has. */
  turns: number;
  /** The share of its memory for keys and values that is in use, 0 to 1; null where it does not say. */
  kvUse: number | null;
  waiting: number;
  /** Requests that it threw out of its memory since. */
  preemptions: number;
};

export type AdmissionBounds = { floor: number; ceiling: number };

const GROWTH = 1.25;
const CUT_FOR_QUEUE = 0.9;
const CUT_FOR_PREEMPTION = 0.8;
/**
 * Below it there is room for more, up to the next for one, above that for none, and far above it for fewer: contexts may fill
 * 90 %, and what runs adds to them.
 */
const ROOM_BELOW = 0.6;
const FULL_ABOVE = 0.8;
const CROWDED_ABOVE = 0.97;
/** Looks after a cut, in which its effect shows: cuts upon cuts would leave nothing. */
const REST_AFTER_CUT = 2;

/** Nobody is held back until an engine shows that it has too much: contexts that are ours have room already (`room.ts`). */
export const UNLIMITED: Admission = { limit: Number.POSITIVE_INFINITY, reached: false, rest: 0 };

/** Grows slowly where the limit holds somebody back and there is room; cuts at once, from what runs. */
export function adjusted(
  admission: Admission,
  { kvUse, turns, waiting, preemptions }: EngineSample,
  { floor, ceiling }: AdmissionBounds,
): Admission {
  // Without its word of its memory nothing is known that a limit could follow.
  if (kvUse === null) return { ...admission, reached: false };
  const { limit, reached } = admission;
  const next = (value: number, rest: number) => {
    return { limit: Math.min(ceiling, Math.max(floor, Math.floor(value))), reached: false, rest };
  };
  if (admission.rest > 0) return next(limit, admission.rest - 1);
  const inUse = Math.min(limit, turns);
  if (preemptions > 0) return next(inUse * CUT_FOR_PREEMPTION, REST_AFTER_CUT);
  const crowded = kvUse > CROWDED_ABOVE || (waiting > 0 && kvUse > FULL_ABOVE);
  if (crowded) return next(inUse * CUT_FOR_QUEUE, REST_AFTER_CUT);
  if (!reached || kvUse >= FULL_ABOVE) return next(limit, 0);
  return next(kvUse < ROOM_BELOW ? Math.max(limit + 1, limit * GROWTH) : limit + 1, 0);
}

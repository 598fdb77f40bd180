import type { Arrival } from "../../src/inference/live-trajectory.ts";

let arrivals = 0;

/** A trajectory of no group that needs a backend, whichever it is. */
export function arrival(fields: Partial<Arrival> = {}): Arrival {
  const ordinal = arrivals++;
  return { jobId: `job-${ordinal}`, ordinal, group: null, preferredId: null, ...fields };
}

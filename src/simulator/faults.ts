import { z } from "zod";
import { ServiceError } from "../errors.ts";
import { uniform } from "./random.ts";

const KINDS = [
  "status",
  "reset",
  "stall",
  "garbage",
  "truncate",
  "lengths",
  "nan",
  "bad_ids",
] as const;

/**
 * What goes wrong on purpose. `reset` ends the connection before the first byte, `stall` never
 * answers, `garbage` is a 200 whose body is not JSON, `truncate` ends the connection within the
 * body. Where token ids are returned, `lengths` leaves out a log-probability, `nan` makes one no
 * number, and `bad_ids` has an id that no vocabulary has.
 */
export type Fault = {
  kind: (typeof KINDS)[number];
  /** Of `kind: "status"`. */
  status: number;
  /** Units: seconds, as `Retry-After`; null sends none. */
  retryAfterS: number | null;
  /** Which share of the requests; 1 is all. */
  rate: number;
  /** Only with this many assistant messages in the conversation; null is any prompt whatever. */
  turn: number | null;
  /** At most so many times in the life of the simulator; null is no limit. */
  limit: number | null;
};

const natural = z.coerce.number().int().min(0);

const fieldsSchema = z.strictObject({
  status: z.coerce.number().int().min(400).max(599).default(500),
  retry_after: z.coerce.number().min(0).nullable().default(null),
  rate: z.coerce.number().gt(0).max(1).default(1),
  turn: natural.nullable().default(null),
  limit: natural.nullable().default(null),
});

/**
 * Reads one fault: a kind (`reset`) or `status=NNN`, then any of `rate`, `turn`, `limit`,
 * `retry_after`.
 *
 * @throws ServiceError `invalid_field`
 */
export function parseFault(text: string): Fault {
  const pairs = text.split(",").map((part) => part.trim().split("="));
  const [first = ""] = pairs[0] ?? [];
  const kind = KINDS.find((known) => known === first);
  if (!kind || (kind === "status") !== (pairs[0]?.length === 2)) {
    throw wrong(text, `must begin with status=NNN or one of ${KINDS.slice(1).join(", ")}`);
  }
  const fields = pairs.slice(kind === "status" ? 0 : 1);
  const parsed = fieldsSchema.safeParse(Object.fromEntries(fields));
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const name = issue?.path[0] === undefined ? "" : `${String(issue.path[0])}: `;
    throw wrong(text, `${name}${issue?.message}`);
  }
  const { status, retry_after, rate, turn, limit } = parsed.data;
  return { kind, status, retryAfterS: retry_after, rate, turn, limit };
}

function wrong(text: string, message: string): ServiceError {
  return new ServiceError("invalid_field", `fault "${text}": ${message}`, { field: "fault" });
}

/**
 * Chooses the fault of each request. The n-th request meets the same one whenever the seed is the
 * same.
 */
export class FaultSource {
  #faults: { fault: Fault; left: number }[] = [];
  readonly #seed: number;

  constructor(faults: Fault[], seed: number) {
    this.#seed = seed;
    this.replace(faults);
  }

  /** From the next request on, these instead of those before. */
  replace(faults: readonly Fault[]): void {
    this.#faults = faults.map((fault) => ({
      fault,
      left: fault.limit ?? Number.POSITIVE_INFINITY,
    }));
  }

  get faults(): Fault[] {
    return this.#faults.map(({ fault }) => fault);
  }

  /** `turn` is null for a prompt that is no conversation, such as a probe's. */
  next(requestNumber: number, turn: number | null): Fault | null {
    for (const [index, entry] of this.#faults.entries()) {
      const { fault } = entry;
      if (entry.left === 0 || (fault.turn !== null && fault.turn !== turn)) continue;
      if (uniform(this.#seed, index, requestNumber) >= fault.rate) continue;
      entry.left--;
      return fault;
    }
    return null;
  }
}

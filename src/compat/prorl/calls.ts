import { createHash } from "node:crypto";
import { ServiceError } from "../../errors.ts";
import { inScope } from "../../jobs/owner.ts";
import { canonicalJson } from "../../protocol/parse.ts";

/** How the ids of its rollouts begin. */
export const ID_PREFIX = "prorl-";

/** An open `/process`: a rollout and those who wait for it. */
export type Call = {
  readonly rolloutId: string;
  /** The client's own name for it. */
  readonly jobId: string | null;
  /** Whose it is, by whom its name is known. */
  readonly client: string;
  readonly bodySha256: string;
  /** Until it resolves there may be no rollout yet, and after it failed there is none. */
  accepted: Promise<unknown>;
  /** Connections that wait for the result. */
  readers: number;
  /** Cancels the rollout, or forgets its result, when nobody came back for it. */
  timer: Timer | null;
};

type CallsParts = {
  /** How long a rollout goes on after its client left, where it has no id to come back with. */
  disconnectGraceMs: number;
  /** How long one with an id, or its result, waits for its client. */
  keepMs: number;
  cancel(rolloutId: string): void;
};

/**
 * The calls of `/process` that are not answered yet, by the client's id. A client that lost its connection
 * comes back with the same body to the same rollout; after its answer, the same id is a new call.
 */
export class Calls {
  readonly #parts: CallsParts;
  readonly #open = new Set<Call>();
  readonly #byJobId = new Map<string, Call>();

  constructor(parts: CallsParts) {
    this.#parts = parts;
  }

  get open(): Iterable<Call> {
    return this.#open;
  }

  byJobId(jobId: string, client: string): Call | null {
    return this.#byJobId.get(inScope(client, jobId)) ?? null;
  }

  /**
   * The call that a body belongs to. `fresh` when it is not under way yet.
   *
   * @throws ServiceError `id_conflict` when the id is in use for another body
   */
  enter(jobId: string | null, body: unknown, client: string): { call: Call; fresh: boolean } {
    const bodySha256 = createHash("sha256").update(canonicalJson(body)).digest("hex");
    const known = jobId === null ? undefined : this.#byJobId.get(inScope(client, jobId));
    if (known && known.bodySha256 !== bodySha256) {
      const message = `job_id "${jobId}" is in use by a call with another body`;
      throw new ServiceError("id_conflict", message, { field: "job_id" });
    }
    const call = known ?? this.#begin(jobId, bodySha256, client);
    if (call.timer) clearTimeout(call.timer);
    call.timer = null;
    call.readers++;
    return { call, fresh: !known };
  }

  /** The result was handed to a client, or there is none to come. */
  answered(call: Call): void {
    call.readers--;
    this.#forget(call);
  }

  /** A client left before its answer. */
  left(call: Call): void {
    if (--call.readers > 0 || !this.#open.has(call)) return;
    const { disconnectGraceMs, keepMs, cancel } = this.#parts;
    const abandon = () => {
      cancel(call.rolloutId);
      this.#forget(call);
    };
    call.timer = setTimeout(abandon, call.jobId === null ? disconnectGraceMs : keepMs);
    call.timer.unref();
  }

  forgetAll(): void {
    for (const call of this.#open) this.#forget(call);
  }

  #begin(jobId: string | null, bodySha256: string, client: string): Call {
    const rolloutId = `${ID_PREFIX}${crypto.randomUUID()}`;
    const unread = { accepted: Promise.resolve(), readers: 0, timer: null };
    const call: Call = { rolloutId, jobId, client, bodySha256, ...unread };
    this.#open.add(call);
    if (jobId !== null) this.#byJobId.set(inScope(client, jobId), call);
    return call;
  }

  #forget(call: Call): void {
    if (call.timer) clearTimeout(call.timer);
    this.#open.delete(call);
    const name = call.jobId === null ? null : inScope(call.client, call.jobId);
    if (name !== null && this.#byJobId.get(name) === call) this.#byJobId.delete(name);
  }
}

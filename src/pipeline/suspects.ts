import { isFinal, type Job } from "../jobs/job.ts";

/** Of jobs that have been in as many crashes as a job survives, so many are active at once. */
const TOGETHER = 8;

/**
 * Jobs that were active when the service or their thread died. Who did it is not known where others were active, so
 * nobody is failed for it: those that have been in `maxCrashes` crashes go on in small groups, and those that have been
 * in more each alone, with nothing else active in the service. So the one that does it is found within
 * `maxCrashes + 2` crashes, and the others come to their ends.
 */
export class Suspects {
  readonly #maxCrashes: number;
  /** Crashes by id, of unfinished jobs for which there is a limit. */
  readonly #crashes = new Map<string, number>();

  constructor(maxCrashes: number, found: readonly { id: string; crashes: number }[]) {
    this.#maxCrashes = maxCrashes;
    for (const { id, crashes } of found) this.#crashes.set(id, crashes);
  }

  /** Of each change of a job. */
  note(job: Pick<Job, "id" | "state" | "crashes">): void {
    if (job.crashes < this.#maxCrashes || job.crashes === 0) return;
    if (isFinal(job)) this.#crashes.delete(job.id);
    else this.#crashes.set(job.id, job.crashes);
  }

  /** Those that may be active only while nothing else is. */
  alone(): string[] {
    const alone: string[] = [];
    for (const [id, crashes] of this.#crashes) if (crashes > this.#maxCrashes) alone.push(id);
    return alone;
  }

  /** Whether a job may become active beside those that are. */
  mayJoin(id: string, active: { keys(): Iterable<string> }): boolean {
    if (this.#crashes.size === 0) return true;
    const crashes = this.#crashes.get(id);
    if (crashes === undefined) return true;
    if (crashes > this.#maxCrashes) return false;
    let together = 0;
    for (const other of active.keys()) if (this.#crashes.has(other)) together++;
    return together < TOGETHER;
  }
}

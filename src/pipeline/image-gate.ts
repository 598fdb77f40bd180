import { existsSync } from "node:fs";
import type { Stage } from "../jobs/job.ts";

/** So many images are remembered as being on the node; the others are looked for again. */
const REMEMBERED = 10_000;

/**
 * Keeps jobs whose image has to be pulled or unpacked from standing in the way of others: of each image that
 * is not on the node one job goes ahead, holding neither a slot nor a start, and the image's other jobs stay
 * in the queue until it is there. Images are told apart by what jobs call them.
 */
export class ImageGate {
  readonly #atOnce: number;
  readonly #onNode: (image: string) => string | null;
  /** Where the files of an image were when somebody last looked; the most recent last. */
  readonly #paths = new Map<string, string>();
  /** In which stage the job is that is ahead for an image. */
  readonly #fetching = new Map<string, Stage>();
  /** Not on the node, and as many others as may be are fetched. */
  readonly #absent = new Set<string>();

  /**
   * @param atOnce images that are fetched at once
   * @param onNode where an image's files are; null: not known to be on the node. Has to be quick.
   */
  constructor(atOnce: number, onNode: (image: string) => string | null) {
    this.#atOnce = atOnce;
    this.#onNode = onNode;
  }

  /** How many jobs of a stage are ahead of the others of their image. */
  fetching(stage: Stage): number {
    let count = 0;
    for (const ahead of this.#fetching.values()) if (ahead === stage) count++;
    return count;
  }

  /** The images whose jobs have to wait. */
  get barred(): string[] {
    return [...this.#fetching.keys(), ...this.#absent];
  }

  /** What a job of this image does now in `stage`: start, go ahead for its image, or wait. */
  enter(image: string, stage: Stage): "start" | "fetch" | "wait" {
    if (this.#fetching.has(image) || this.#absent.has(image)) return "wait";
    if (this.#isThere(image)) return "start";
    const isFull = this.#fetching.size >= this.#atOnce;
    if (isFull) this.#absent.add(image);
    else this.#fetching.set(image, stage);
    return isFull ? "wait" : "fetch";
  }

  /** Its files are at `path`. */
  found(image: string, path: string): void {
    this.left(image);
    this.#paths.delete(image);
    this.#paths.set(image, path);
    const [oldest] = this.#paths.keys();
    if (this.#paths.size > REMEMBERED && oldest !== undefined) this.#paths.delete(oldest);
  }

  /** Nobody is ahead for it any more. */
  left(image: string): void {
    if (this.#fetching.delete(image)) this.#absent.clear();
  }

  #isThere(image: string): boolean {
    const known = this.#paths.get(image);
    // It may have been pruned from the cache meanwhile.
    if (known !== undefined && existsSync(known)) return true;
    const path = this.#onNode(image);
    if (path === null) this.#paths.delete(image);
    else this.found(image, path);
    return path !== null;
  }
}

import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { ServiceError } from "../errors.ts";
import { print } from "../lib/print.ts";

/** Results on disk as they come, one JSON line each: whoever is killed in the middle keeps what has ended. */
export class ResultFile {
  readonly path: string;
  lines: number;
  readonly #echo: boolean;

  /**
   * @param echo whether the lines go to standard output too
   * @param behind lines that are there already, and stay
   */
  constructor(path: string, echo: boolean, behind = 0) {
    this.path = path;
    this.lines = behind;
    this.#echo = echo;
    this.#write(() => {
      mkdirSync(dirname(path), { recursive: true });
      if (behind === 0) writeFileSync(path, "");
    });
  }

  /** @throws ServiceError `disk_full` */
  add(result: unknown): void {
    const line = `${JSON.stringify(result)}\n`;
    this.#write(() => appendFileSync(this.path, line));
    this.lines++;
    if (this.#echo) print(line);
  }

  #write(work: () => void): void {
    try {
      work();
    } catch (error) {
      const message = `results can't be written to ${this.path}: ${(error as Error).message}`;
      const mend = "name a file with --out on a disk that has room";
      throw new ServiceError("disk_full", message, { mend, cause: error });
    }
  }
}

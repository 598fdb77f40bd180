import { readFileSync } from "node:fs";

/** Where something of a user's module is: `/path/tasks.ts:12`. */
export type Place = { file: string; line: number };

/** Frames below it are ours or the runtime's. Units: characters. */
const MAX_STACK = 2000;

/** A user's module as text, to say in which line something stands. A module may be made by another: then line 1. */
export class ModuleSource {
  readonly #lines: string[];

  constructor(readonly path: string) {
    this.#lines = readText(path).split("\n");
  }

  /** The first line with one of the texts, each tried in turn; `after` it where that is given. */
  place(texts: readonly string[], after = 1): Place {
    for (const text of texts) {
      const pattern = new RegExp(
        `(?<![\\w$])${text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")}(?![\\w$])`,
      );
      const found = this.#lines.findIndex(
        (line, index) => index >= after - 1 && pattern.test(line),
      );
      if (found >= 0) return { file: this.path, line: found + 1 };
    }
    return { file: this.path, line: after };
  }

  /** Where a member of a kind stands: behind the kind's name, or anywhere. */
  member(kind: string | null, member: string): Place {
    const { line } = this.place(
      kind === null ? ["taskKinds"] : [`"${kind}"`, `'${kind}'`, "taskKinds"],
    );
    const behind = this.place([member], line);
    const isThere = new RegExp(`(?<![\\w$])${member}(?![\\w$])`).test(
      this.#lines[behind.line - 1] ?? "",
    );
    return isThere ? behind : { file: this.path, line };
  }
}

export function told({ file, line }: Place): string {
  return `${file}:${line}`;
}

/** What an error of a user's module says of its place, for the job's record. */
export type ThrownDetails = { file?: string; line?: number; column?: number; stack?: string };

/** The frame where it was thrown, which is the topmost one in a file, and the stack down to our own frames. */
export function thrownDetails(thrown: unknown): ThrownDetails {
  const stack = thrown instanceof Error ? String(thrown.stack ?? "") : "";
  if (stack === "") return {};
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line) && !OURS.test(line));
  const top = frames.map((line) => FRAME.exec(line)).find((found) => found !== null);
  const place = top ? { file: top[1] ?? "", line: Number(top[2]), column: Number(top[3]) } : {};
  const head = `${(thrown as Error).name}: ${(thrown as Error).message}`.slice(0, MAX_STACK / 2);
  return { ...place, stack: [head, ...frames].join("\n").slice(0, MAX_STACK) };
}

const FRAME = /\(?(?:file:\/\/)?(\/[^()]*?):(\d+):(\d+)\)?$/;
/** The compiled binary's own files, the runtime's, and this folder's where the service runs from source. */
const OURS = new RegExp(`/\\$bunfs/|\\((?:native|node:|bun:)|\\bnative:|${dirPattern()}`);

function dirPattern(): string {
  return `${import.meta.dir.replace(/\/tasks$/, "")}/`.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

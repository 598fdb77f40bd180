import { constants, fstatSync, mkdirSync, openSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import { UsageError } from "./flags.ts";

/** `new` takes a file without content, `force` replaces the content of one, `resume` keeps it. */
export type OpenMode = "new" | "force" | "resume";

export type OpenOptions = {
  mode: OpenMode;
  /** The rows, which must not be written over. */
  input: string;
  /** Whether a run can go on with such a file. */
  resumable: boolean;
};

export const NULL_DEVICE = "/dev/null";

/** Names the flag that named the file. */
export function refusal(path: string, { mode }: OpenOptions, why: string): UsageError {
  return new UsageError(`${mode === "resume" ? "--resume" : "--out"} ${path} ${why}`);
}

/** Null: there is none yet. @throws UsageError */
export function lookAtResults(path: string, options: OpenOptions): Stats | null {
  const { mode, input } = options;
  let found: Stats | undefined;
  try {
    found = statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw refusal(path, options, `can't be used: ${(error as Error).message}`);
  }
  if (!found) {
    if (mode === "resume")
      throw refusal(path, options, "is not there; name the results of an earlier run");
    return null;
  }
  if (found.isDirectory()) throw refusal(path, options, "is a folder; name a file");
  if (!found.isFile() && path !== NULL_DEVICE) {
    throw refusal(
      path,
      options,
      "is no file; name one, or take the results from standard output by --json",
    );
  }
  const isSame = (other: Stats | undefined) => other?.ino === found.ino && other.dev === found.dev;
  if (isSame(statSync(input, { throwIfNoEntry: false }))) {
    throw refusal(path, options, "is the file of the rows; name another one");
  }
  if (found.isFile() && [1, 2].some((fd) => isSame(statOf(fd)))) {
    throw refusal(
      path,
      options,
      "is what this command prints to; name another one, or use --json alone",
    );
  }
  return found;
}

/** Makes it with its folders, where it is not there. @throws UsageError */
export function openResults(path: string, options: OpenOptions): number {
  try {
    mkdirSync(dirname(path), { recursive: true });
    const { O_RDWR, O_CREAT, O_APPEND } = constants;
    return openSync(path, O_RDWR | O_CREAT | O_APPEND, 0o666);
  } catch (error) {
    throw refusal(
      path,
      options,
      `can't be written: ${(error as Error).message}; name another file`,
    );
  }
}

function statOf(fd: number): Stats | undefined {
  try {
    return fstatSync(fd);
  } catch {
    return undefined;
  }
}

import { type ParseArgsConfig, parseArgs } from "node:util";
import { nearest } from "../lib/nearest.ts";

/** A command line that can't be understood: exit code 2, with the command's help at hand. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

type Flags = NonNullable<ParseArgsConfig["options"]>;

/** @throws UsageError */
export function parseFlags<const F extends Flags>(args: string[], options: F) {
  try {
    return parseArgs({ args, options, strict: true, allowPositionals: true, allowNegative: true });
  } catch (error) {
    // Node's text says what is wrong in its first sentence, and then talks about `--`.
    const message = (error as Error).message.split(". ")[0] ?? "";
    const unknown = /^Unknown option '--(?:no-)?([^']+)'/.exec(message)?.[1];
    if (unknown === undefined) throw new UsageError(message);
    throw new UsageError(
      `there is no flag --${unknown}${meant(unknown, Object.keys(options), "--")}`,
    );
  }
}

/** ` (did you mean --image?)`, where something is near. */
export function meant(typed: string, words: Iterable<string>, prefix = ""): string {
  const word = nearest(typed, words);
  return word === null ? "" : ` (did you mean ${prefix}${word}?)`;
}

/** What a command does first of all, where it is none of `actions`. */
export function unknownAction(action: string | undefined, actions: string[]): UsageError {
  if (action === undefined) return new UsageError(`an action is missing: ${actions.join(", ")}`);
  return new UsageError(`there is no action "${action}"${meant(action, actions)}`);
}

/** @throws UsageError unless `text` is a whole number of at least `min`. */
export function wholeNumber(flag: string, text: string, min = 0): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isInteger(value) && value >= min) return value;
  throw new UsageError(`${flag} takes a whole number of at least ${min}, not "${text}"`);
}

/** @throws UsageError */
export function refuseExtra(positionals: string[], allowed: number): void {
  const extra = positionals[allowed];
  if (extra !== undefined) throw new UsageError(`unexpected argument: ${extra}`);
}

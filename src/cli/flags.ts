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
    if (unknown === undefined) throw new UsageError(clearer(message));
    throw new UsageError(
      `there is no flag --${unknown}${meant(unknown, Object.keys(options), "--")}`,
    );
  }
}

/** Node says `Option '--name <value>' argument missing`, and `Option '--json' does not take an argument`. */
function clearer(message: string): string {
  const missing = /^Option '(--\S+) <value>' argument missing/.exec(message)?.[1];
  if (missing !== undefined) return `${missing} needs a value`;
  const ambiguous = /^Option '(--\S+) <value>' argument is ambiguous/.exec(message)?.[1];
  if (ambiguous !== undefined) {
    return `${ambiguous} needs a value; one that begins with a dash is written ${ambiguous}=VALUE`;
  }
  return message;
}

/** Flags that have no effect in what is asked for, and why: ready to follow a flag in a sentence. */
export type Idle = { flags: readonly string[]; when: boolean; why: string };

/**
 * A flag that would be ignored was meant to do something, so it is refused.
 * @param values of the flags that were given; those left out are undefined
 * @throws UsageError
 */
export function refuseIdle(values: Record<string, unknown>, rules: readonly Idle[]): void {
  for (const { flags, when, why } of rules) {
    const idle = when ? flags.find((name) => values[name] !== undefined) : undefined;
    if (idle !== undefined) throw new UsageError(`--${idle} ${why}`);
  }
}

/**
 * The same for a command with actions, each of which has flags of its own besides those of all.
 * @throws UsageError
 */
export function refuseForeign<const T extends Record<string, readonly string[]>>(
  values: Record<string, unknown>,
  action: keyof T & string,
  { common, actions }: { common: readonly string[]; actions: T },
): void {
  const own = [...common, ...(actions[action] ?? [])];
  const foreign = Object.keys(values).find(
    (name) => values[name] !== undefined && !own.includes(name),
  );
  if (foreign === undefined) return;
  const homes = Object.keys(actions).filter((name) => actions[name]?.includes(foreign));
  throw new UsageError(`--${foreign} does nothing for ${action}: it is for ${homes.join(", ")}`);
}

/** ` (did you mean --image?)`, where something is near. */
export function meant(typed: string, words: Iterable<string>, prefix = ""): string {
  const word = nearest(typed, words);
  return word === null ? "" : ` (did you mean ${prefix}${word}?)`;
}

/** What a command is to do: a key of `actions`. @throws UsageError */
export function actionOf<T extends object>(
  action: string | undefined,
  actions: T,
): keyof T & string {
  const names = Object.keys(actions);
  if (action === undefined) throw new UsageError(`an action is missing: ${names.join(", ")}`);
  if (names.includes(action)) return action as keyof T & string;
  throw new UsageError(`there is no action "${action}"${meant(action, names)}`);
}

/** @throws UsageError unless `text` is a whole number of at least `min` and at most `max`. */
export function wholeNumber(
  flag: string,
  text: string,
  min = 0,
  max = Number.MAX_SAFE_INTEGER,
): number {
  const value = Number(text);
  const isDecimal = /^\s*-?\d+\s*$/.test(text);
  if (isDecimal && Number.isInteger(value) && value >= min && value <= max) return value;
  const most = max === Number.MAX_SAFE_INTEGER ? "" : ` and at most ${max}`;
  throw new UsageError(`${flag} takes a whole number of at least ${min}${most}, not "${text}"`);
}

/** @throws UsageError */
export function refuseExtra(positionals: string[], allowed: number): void {
  const extra = positionals[allowed];
  if (extra !== undefined) throw new UsageError(`unexpected argument: ${extra}`);
}

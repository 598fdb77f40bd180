import { availableParallelism } from "node:os";
import { resolve as resolvePath } from "node:path";
import { z } from "zod";
import { MAX_TIMER_MS } from "../lib/clock.ts";

export const cores = availableParallelism();
/** A number, or its text: flags and variables have nothing else. */
export const whole = (min: number, max = Number.MAX_SAFE_INTEGER) => {
  const most = max === Number.MAX_SAFE_INTEGER ? "" : ` and at most ${max}`;
  const error = `must be a whole number of at least ${min}${most}`;
  return z.preprocess(
    (value) => (typeof value === "string" && value.trim() !== "" ? Number(value) : value),
    z.int({ error }).min(min, { error }).max(max, { error }),
  );
};
export const count = whole(1);
export const bytes = whole(1);
export const ms = whole(1, MAX_TIMER_MS);
export const httpUrl = z.url({
  protocol: /^https?$/,
  error: "must be an http: or https: URL, such as http://127.0.0.1:8000/v1",
});
export const path = z.string().min(1, "must not be empty");
/** Absolute, because programs that run in other folders get what lies below it. */
export const folder = path.overwrite((given) => resolvePath(given));
export const networks = z
  .string()
  .regex(
    /^(loopback|private|public)(,(loopback|private|public))*$/,
    "must be of loopback,private,public",
  );
export const flag = z.union([
  z.boolean(),
  z.stringbool({ truthy: ["true", "1", "yes"], falsy: ["false", "0", "no"] }),
]);

/** One setting: its shape, its default, and what it means. */
export type Setting<S extends z.ZodType, D> = { schema: S; fallback: D; doc: string };

export function setting<S extends z.ZodType, D extends z.output<S> | undefined>(
  schema: S,
  fallback: D,
  doc: string,
): Setting<S, D> {
  return { schema, fallback, doc };
}

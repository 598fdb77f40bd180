import type { z } from "zod";
import { parseBody } from "./parse.ts";
import { type RolloutRequest, rolloutRequestSchema, submitSchema } from "./rollout.ts";

type Raw = Record<string, unknown>;

const { id: idSchema, instance: instanceSchema } = rolloutRequestSchema.shape;

/**
 * Many rollouts, as `submitSchema` has them. Those of a batch mostly have the same terms, so of one that repeats the
 * terms of the one before only id and instance are checked; they then share the terms, see `shareTerms`.
 *
 * @throws ServiceError `invalid_field`, `unknown_field`
 */
export function parseSubmit(body: object): z.output<typeof submitSchema> {
  return parseAlike(body as Raw) ?? parseBody(submitSchema, body);
}

/** Null wherever something may be wrong: what it is the schema says. */
function parseAlike({ rollouts, wait_ms, ...unknown }: Raw) {
  if (!Array.isArray(rollouts) || rollouts.length < 2 || rollouts.length > 10_000) return null;
  const wait = submitSchema.shape.wait_ms.safeParse(wait_ms);
  if (Object.keys(unknown).length > 0 || !wait.success) return null;
  const requests: RolloutRequest[] = [];
  let raw: Raw | null = null;
  let terms: Omit<RolloutRequest, "id" | "instance"> = {};
  for (const one of rollouts) {
    if (raw !== null && hasTermsOf(raw, one)) {
      const instance = instanceSchema.safeParse(one.instance);
      const id = idSchema.safeParse(one.id);
      if (!instance.success || !id.success) return null;
      const request: RolloutRequest = { ...terms, instance: instance.data };
      if (id.data !== undefined) request.id = id.data;
      requests.push(request);
      continue;
    }
    const parsed = rolloutRequestSchema.safeParse(one);
    if (!parsed.success) return null;
    const { id: _id, instance: _instance, ...rest } = parsed.data;
    [raw, terms] = [one, rest];
    requests.push(parsed.data);
  }
  return { rollouts: requests, ...(wait.data === undefined ? {} : { wait_ms: wait.data }) };
}

/** Whether a value that is not checked yet says the same as one that is, besides id and instance. */
function hasTermsOf(checked: Raw, value: unknown): value is Raw {
  if (typeof value !== "object" || value === null) return false;
  let others = 0;
  for (const name in value) {
    if (name === "id" || name === "instance") continue;
    if (!Object.hasOwn(checked, name) || !isEqual(checked[name], (value as Raw)[name]))
      return false;
    others++;
  }
  for (const name in checked) if (name !== "id" && name !== "instance") others--;
  return others === 0;
}

/** Of values that `JSON.parse` gave. */
function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every(
    (name) => Object.hasOwn(b, name) && isEqual((a as Raw)[name], (b as Raw)[name]),
  );
}

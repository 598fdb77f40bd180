import { canonicalJson } from "./parse.ts";
import { type RolloutRequest, rolloutRequestSchema } from "./rollout.ts";

/** What a rollout is asked for besides its instance: the same for most rollouts of a batch. */
export type Terms = Omit<RolloutRequest, "id" | "instance">;

const NAMES = Object.keys(rolloutRequestSchema.shape).filter(
  (name) => name !== "id" && name !== "instance",
) as (keyof Terms)[];

/** Whether two requests share their terms; those that only look the same are told apart, which costs time and no more. */
export function shareTerms(a: RolloutRequest, b: RolloutRequest): boolean {
  for (const name of NAMES) if (a[name] !== b[name]) return false;
  return true;
}

/** The canonical JSON of requests with the same terms, without their ids, by instance. */
export function canonicalWith(terms: Terms): (instance: RolloutRequest["instance"]) => string {
  const fields = (names: (keyof Terms)[]) =>
    canonicalJson(Object.fromEntries(names.map((name) => [name, terms[name]]))).slice(1, -1);
  const before = fields(NAMES.filter((name) => name < "instance"));
  const after = fields(NAMES.filter((name) => name > "instance"));
  const start = before === "" ? "{" : `{${before},`;
  const end = after === "" ? "}" : `,${after}}`;
  return (instance) => `${start}"instance":${canonicalJson(instance)}${end}`;
}

import { type Named, TemplateError, type Value } from "./values.ts";

export type Filter = (value: Value, positional: Value[], named: Named) => Value;

/** The arguments of a call in the order of the names; those not given are undefined. */
export function bound(
  names: readonly string[],
  positional: readonly Value[],
  named: Named,
): (Value | undefined)[] {
  if (positional.length > names.length) {
    throw new TemplateError(`takes ${names.length} arguments but ${positional.length} were given`);
  }
  for (const name of named.keys()) {
    if (!names.includes(name)) {
      throw new TemplateError(`got an unexpected keyword argument '${name}'`);
    }
  }
  return names.map((name, at) => (at < positional.length ? positional[at] : named.get(name)));
}

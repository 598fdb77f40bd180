import type { Context } from "hono";
import { z } from "zod";
import { ServiceError } from "../errors.ts";
import { parseBody } from "../protocol/parse.ts";

/** Of a route that takes no parameters. */
export const noQuery = z.strictObject({});

/**
 * The parameters of a request's URL. One that is given twice is refused, because of two filters either would be
 * dropped; so is one that the route does not know.
 *
 * @throws ServiceError `invalid_field`, `unknown_field`
 */
export function readQuery<S extends z.ZodType>(c: Context, schema: S): z.output<S> {
  const { searchParams } = new URL(c.req.url);
  const given: Record<string, string> = Object.create(null);
  for (const [name, value] of searchParams) {
    if (Object.hasOwn(given, name)) throw repeated(name);
    given[name] = value;
  }
  return parseBody(schema, given);
}

function repeated(name: string): ServiceError {
  const field = name.slice(0, 100);
  const mend = name === "label" ? "write label=a:1,b:2 for those that have both" : "give it once";
  return new ServiceError("invalid_field", `${field}: is given more than once`, { field, mend });
}

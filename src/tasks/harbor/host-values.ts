import { ServiceError } from "../../errors.ts";

const TEMPLATE = /^\$\{([^}:]+)(?::-(.*))?\}$/s;

/**
 * Variables with `${NAME}` and `${NAME:-default}` filled in from the service's own environment, of which only what the
 * operator lists is given away.
 *
 * @param allowed names of variables that a task may ask for
 * @throws ServiceError `invalid_field` where a value without a default is not to be had
 */
export function hostValues(
  env: Readonly<Record<string, string>>,
  table: string,
  allowed: readonly string[],
): Record<string, string> {
  const filled = Object.entries(env).map(([key, value]): [string, string] => {
    const [, name, fallback] = TEMPLATE.exec(value) ?? [];
    if (name === undefined) return [key, value];
    const own = allowed.includes(name) ? process.env[name] : undefined;
    const given = own ?? fallback;
    if (given !== undefined) return [key, given];
    throw missing(`${table}.${key}`, name, allowed);
  });
  return Object.fromEntries(filled);
}

function missing(key: string, name: string, allowed: readonly string[]): ServiceError {
  const listed = allowed.includes(name);
  const message = `${key} asks for the variable ${name}, which ${listed ? "the service does not have" : "tasks may not have"}`;
  const mend = listed
    ? `start the service with ${name} set`
    : `start the service with ${name} set and with --task-envs ${name}`;
  return new ServiceError("invalid_field", message, { field: "instance.task_toml", mend });
}

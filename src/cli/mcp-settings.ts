import { readFileSync } from "node:fs";
import { z } from "zod";
import { ServiceError } from "../errors.ts";
import { fieldPath } from "../lib/field-path.ts";
import type { TaskSettings } from "../tasks/settings.ts";

const texts = z.record(z.string(), z.string()).default({});
const common = { task_kinds: z.array(z.string()).default([]) };
const fileSchema = z.object({
  mcpServers: z.record(
    z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
    z.union([
      z.strictObject({
        ...common,
        command: z.string().min(1),
        args: z.array(z.string()).default([]),
        env: texts,
      }),
      z.strictObject({ ...common, url: z.url({ protocol: /^https?$/ }), headers: texts }),
    ]),
  ),
});

const FORMS =
  "must have `command` (with `args`, `env`) or `url` (with `headers`), and besides only `task_kinds`";

/**
 * The operator's tool servers, in the JSON that other clients of the protocol read as well; `task_kinds` of a server
 * gives its tools to every rollout of those kinds.
 *
 * @throws ServiceError `invalid_field`
 */
export function mcpSettings(path: string | undefined): TaskSettings["mcp"] {
  if (path === undefined) return {};
  const parsed = fileSchema.safeParse(read(path));
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const why = issue?.code === "invalid_union" ? FORMS : issue?.message;
    throw refused(`${path}: ${fieldPath(issue?.path ?? [])}: ${why}`);
  }
  const servers = Object.entries(parsed.data.mcpServers).map(([name, server]) => {
    const { task_kinds: taskKinds } = server;
    if ("url" in server) {
      const { url, headers } = server;
      return [name, { address: { name, url, headers }, taskKinds }] as const;
    }
    const { command, args, env } = server;
    return [name, { address: { name, command: [command, ...args], env }, taskKinds }] as const;
  });
  return Object.fromEntries(servers);
}

function read(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw refused(`${path}: ${(error as Error).message}`);
  }
}

function refused(why: string): ServiceError {
  return new ServiceError("invalid_field", `mcp_servers: ${why}`, { field: "mcp_servers" });
}

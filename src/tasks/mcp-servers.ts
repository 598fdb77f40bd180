import { z } from "zod";
import type { McpAddress } from "../agent/mcp/mcp-server.ts";
import { ServiceError } from "../errors.ts";
import { requireAllowedUrl } from "./allowed-url.ts";
import type { TaskSettings } from "./settings.ts";

/** A server of the operator's by its name, or any that speaks HTTP below an allowed address. */
const askedSchema = z
  .array(
    z.union([
      z.string().min(1),
      z.strictObject({ name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/), url: z.string() }),
    ]),
  )
  .max(16);

/**
 * The servers of the Model Context Protocol whose tools an agent gets: those that the rollout names, else those of
 * its row, else those that the operator gives to its task kind. Programs are the operator's alone to name: they run
 * outside of the sandbox.
 *
 * @throws ServiceError `invalid_field`
 */
export function mcpServersFor(
  taskKind: string,
  row: Record<string, unknown>,
  ofRollout: unknown,
  settings: TaskSettings,
): McpAddress[] {
  const field = ofRollout === undefined ? "instance.mcp_servers" : "agent.mcp_servers";
  const asked = ofRollout ?? row.mcp_servers ?? undefined;
  if (asked === undefined) {
    const given = Object.values(settings.mcp).filter((each) => each.taskKinds.includes(taskKind));
    return given.map(({ address }) => address);
  }
  const parsed = askedSchema.safeParse(asked);
  if (!parsed.success) {
    const message = `${field}: must be a list of names, or of objects with name and url`;
    throw new ServiceError("invalid_field", message, { field });
  }
  return parsed.data.map((each) => {
    if (typeof each !== "string") {
      const url = requireAllowedUrl(each.url, settings.http.allowedUrls, field).href;
      return { name: each.name, url, headers: {} };
    }
    const known = Object.hasOwn(settings.mcp, each) ? settings.mcp[each] : undefined;
    if (known) return known.address;
    const mend = "name it in the file of --mcp-servers";
    throw new ServiceError("invalid_field", `${field}: there is no tool server "${each}"`, {
      field,
      mend,
    });
  });
}

import { z } from "zod";
import { clip } from "../../agent/clip.ts";
import { mistake, requireText, type Tool } from "../../agent/tool.ts";
import { ServiceError } from "../../errors.ts";
import { PostFailure, postJson, withRetries } from "../../verifiers/post-json.ts";
import { MAX_OBSERVATION_BYTES } from "../drive-agent.ts";
import type { TaskSettings } from "../settings.ts";

const RESULTS = 5;
const MAX_QUERY_CHARS = 400;

const foundSchema = z.looseObject({
  title: z.string().nullish(),
  url: z.string().nullish(),
  content: z.string().nullish(),
  snippet: z.string().nullish(),
});
const answerSchema = z.looseObject({ results: z.array(foundSchema) });

const SCHEMA = {
  type: "function",
  function: {
    name: "web_search",
    description: `Searches the web and returns up to ${RESULTS} results with title, address and an excerpt.`,
    parameters: {
      type: "object",
      properties: { query: { type: "string", description: "What to search for." } },
      required: ["query"],
      additionalProperties: false,
    },
  },
} as const;

/**
 * A search by the operator's server, which the service asks: the sandbox has no network, and no row can name another
 * address. A server that fails is a failure of the rollout, not an answer to the model.
 *
 * @throws ServiceError `tool_server_failed`, from its calls
 */
export function searchTool(search: NonNullable<TaskSettings["search"]>, signal: AbortSignal): Tool {
  const { url, apiKeyEnv, timeoutMs } = search;
  const key = apiKeyEnv === null ? undefined : process.env[apiKeyEnv];
  const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {};
  return {
    schema: SCHEMA as unknown as Tool["schema"],
    async run(args) {
      const query = requireText(args, "query");
      if (typeof query !== "string") return query;
      if (query.trim() === "" || query.length > MAX_QUERY_CHARS) {
        return mistake(`the argument "query" must have 1 to ${MAX_QUERY_CHARS} characters.`);
      }
      try {
        const { json } = await withRetries(signal, () =>
          postJson(url, { query, max_results: RESULTS }, { headers, timeoutMs, signal }),
        );
        return { text: shown(json), ok: true };
      } catch (error) {
        if (!(error instanceof PostFailure)) throw error;
        const message = `the search server at ${new URL(url).host} failed: ${error.message}`;
        throw new ServiceError("tool_server_failed", message);
      }
    },
  };
}

function shown(json: unknown): string {
  const parsed = answerSchema.safeParse(json);
  if (!parsed.success) throw new PostFailure("its answer has no list of results", false);
  if (parsed.data.results.length === 0) return "Nothing was found.";
  const entries = parsed.data.results
    .slice(0, RESULTS)
    .map(({ title, url, content, snippet }, index) =>
      [`[${index + 1}] ${title ?? ""}`, url ?? "", content ?? snippet ?? ""].join("\n").trimEnd(),
    );
  return clip(entries.join("\n\n"), MAX_OBSERVATION_BYTES);
}

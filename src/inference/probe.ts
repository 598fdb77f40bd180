import { z } from "zod";
import { ServiceError } from "../errors.ts";
import { endpointOf } from "./endpoint.ts";
import { callEngine } from "./engine-call.ts";
import { Connections } from "./exchange.ts";

export type ProbeOptions = {
  /** Named in errors; the address itself where the backend has no id yet. */
  id?: string;
  model?: string;
  apiKey?: string;
  timeoutMs: number;
  signal: AbortSignal;
};

/**
 * Units: `maxModelLen` in tokens, prompt and answer together; null where the engine does not say.
 */
export type Probed = { model: string; maxModelLen: number | null };

const MAX_REPLY_BYTES = 4 * 1024 * 1024;
const MAX_LISTED_MODELS = 20;
/** A backend that is busy while it is being added is simply added again. */
const NO_RETRIES = { maxRetries: 0, backoffMs: 0, maxBackoffMs: 0 };

const modelsSchema = z.object({
  data: z.array(
    z.object({ id: z.string().min(1), max_model_len: z.number().int().min(1).nullish() }),
  ),
});

/**
 * Asks an inference server what it serves, and chooses the model where only one is there.
 *
 * @throws ServiceError `engine_*`; `invalid_field` where the model or the address can't be used.
 */
export async function probeBackend(url: string, options: ProbeOptions): Promise<Probed> {
  const { id = "new", model, apiKey, timeoutMs, signal } = options;
  const endpoint = endpointOf({ id, url, ...(apiKey !== undefined && { apiKey }) });
  using connections = new Connections();
  const call = {
    endpoint,
    method: "GET" as const,
    root: "v1" as const,
    path: "/models",
    headers: {},
    body: null,
    requestId: `probe.${id}`,
    timeoutMs,
    maxReplyBytes: MAX_REPLY_BYTES,
  };
  const parsed = modelsSchema.safeParse(await callEngine(connections, call, NO_RETRIES, signal));
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const what = `${issue?.path.join(".") || "the reply"}: ${issue?.message}`;
    throw new ServiceError("engine_bad_reply", `${endpoint.shown}: not a list of models: ${what}`);
  }
  const { data } = parsed.data;
  const chosen =
    model === undefined && data.length === 1 ? data[0] : data.find((m) => m.id === model);
  if (chosen) return { model: chosen.id, maxModelLen: chosen.max_model_len ?? null };
  const names = data.slice(0, MAX_LISTED_MODELS).map((m) => m.id);
  const more = data.length > names.length ? ` and ${data.length - names.length} more` : "";
  const serves = names.length === 0 ? "no model" : `${names.join(", ")}${more}`;
  const problem = model === undefined ? "no model is named" : `there is no model "${model}"`;
  throw new ServiceError("invalid_field", `${endpoint.shown}: ${problem}; it serves ${serves}`, {
    field: "model",
    mend: "name one of the models that it serves",
  });
}

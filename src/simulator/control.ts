import { z } from "zod";
import { ServiceError } from "../errors.ts";
import { renderChat } from "./chatml.ts";
import { messageSchema } from "./conversation.ts";
import { parseFault } from "./faults.ts";
import { failure, type Serving } from "./generation.ts";
import { BLOCK_TOKENS } from "./kv-memory.ts";

/** The version that the simulator says it is, of either engine. */
const VERSION = "0.31.0";

type Handler = (serving: Serving, request: Request) => Response | Promise<Response>;

export const health: Handler = () => new Response(null, { status: 200 });

export const models: Handler = ({ model, maxModelLen: max_model_len }) => {
  const served = { id: model, object: "model", created: 0, owned_by: "rolloutd", root: model };
  return Response.json({ object: "list", data: [{ ...served, parent: null, max_model_len }] });
};

export const version: Handler = () => Response.json({ version: VERSION });

export const isPaused: Handler = ({ engine }) => Response.json({ is_paused: engine.batch.paused });

const pauseModes = z.enum(["abort", "wait", "keep"]).default("abort");

/** vLLM's: `keep` lets requests stand still, `wait` lets them end. */
export const pause: Handler = ({ engine }, request) => {
  const given = new URL(request.url).searchParams.get("mode") ?? undefined;
  const mode = pauseModes.safeParse(given);
  if (!mode.success) return failure(400, "mode: must be abort, wait or keep", "mode");
  engine.batch.pause(mode.data === "keep");
  if (mode.data === "abort") engine.stop(() => true);
  return Response.json({ status: "paused" });
};

export const resume: Handler = ({ engine }) => {
  engine.batch.resume();
  return Response.json({ status: "resumed" });
};

const pauseSchema = z.object({ mode: z.enum(["abort", "retract", "in_place"]).default("abort") });

/** SGLang's: requests stand still unless they are ended. */
export const pauseGeneration: Handler = async ({ engine }, request) => {
  const parsed = pauseSchema.safeParse((await request.json().catch(() => null)) ?? {});
  if (!parsed.success) return failure(400, "mode: must be abort, retract or in_place", "mode");
  const { mode } = parsed.data;
  engine.batch.pause(mode !== "abort");
  if (mode === "abort") engine.stop(() => true);
  return Response.json({ status: "ok" });
};

const abortSchema = z.object({ request_ids: z.array(z.string()) });

export const abortRequests: Handler = async ({ engine }, request) => {
  const parsed = abortSchema.safeParse(await request.json().catch(() => null));
  if (!parsed.success) return failure(400, "request_ids: is missing", "request_ids");
  const ids = new Set(parsed.data.request_ids);
  engine.stop((id) => ids.has(id));
  return Response.json({ status: "ok" });
};

const abortOneSchema = z.object({ rid: z.string().default(""), abort_all: z.boolean().nullish() });

export const abortRequest: Handler = async ({ engine }, request) => {
  const parsed = abortOneSchema.safeParse(await request.json().catch(() => null));
  if (!parsed.success) return failure(400, "rid: is missing", "rid");
  const { rid, abort_all } = parsed.data;
  engine.stop((id) => abort_all === true || (rid !== "" && id.startsWith(rid)));
  return new Response(null, { status: 200 });
};

export const modelInfo: Handler = ({ model, engine }) =>
  Response.json({
    model_path: model,
    tokenizer_path: model,
    is_generation: true,
    weight_version: engine.weightVersion,
  });

export const serverInfo: Handler = ({ maxModelLen }) =>
  Response.json({ version: VERSION, context_length: maxModelLen });

export const getWeightVersion: Handler = ({ engine }) =>
  Response.json({ weight_version: engine.weightVersion });

const updateSchema = z.object({ new_version: z.coerce.string().min(1) });

export const updateWeightVersion: Handler = async ({ engine }, request) => {
  const parsed = updateSchema.safeParse(await request.json().catch(() => null));
  if (!parsed.success) return failure(400, "new_version: is missing", "new_version");
  engine.updateWeights(parsed.data.new_version);
  return Response.json({ success: true, new_version: engine.weightVersion });
};

/** Engines leave their cache as it is while requests run, and do not say so. */
export const flushCache: Handler = ({ engine }) => {
  if (engine.batch.running === 0) engine.kv.flush();
  return new Response(null, { status: 200 });
};

const textSchema = z.union([
  z.object({ prompt: z.string() }),
  z.object({
    messages: z.array(messageSchema).min(1),
    tools: z.array(z.unknown()).default([]),
    add_generation_prompt: z.boolean().default(true),
  }),
]);

export const tokenize: Handler = async ({ tokenizer, maxModelLen }, request) => {
  const parsed = textSchema.safeParse(await request.json().catch(() => null));
  if (!parsed.success) return failure(400, "prompt: is missing", "prompt");
  const { data } = parsed;
  const tokens = tokenizer.encode(
    "prompt" in data
      ? data.prompt
      : renderChat(data.messages, data.tools, data.add_generation_prompt),
  );
  return Response.json({ count: tokens.length, max_model_len: maxModelLen, tokens });
};

const tokensSchema = z.object({
  tokens: z.array(z.number().int().min(0)),
  skip_special_tokens: z.boolean().default(true),
});

/** SGLang's leaves out special tokens where it is not told otherwise; vLLM's shows them. */
export const detokenize =
  (isSglang: boolean): Handler =>
  async ({ tokenizer }, request) => {
    const parsed = tokensSchema.safeParse(await request.json().catch(() => null));
    if (!parsed.success) return failure(400, "tokens: is missing", "tokens");
    const { tokens, skip_special_tokens: skips } = parsed.data;
    const whole = tokenizer.decode(tokens);
    const text = isSglang && skips ? whole.replace(/<\|[a-z_]+\|>/g, "") : whole;
    return Response.json(isSglang ? { text } : { prompt: text });
  };

const faultsSchema = z.object({ faults: z.array(z.string()) });

/** The faults from now on, as `--fault` has them: none for an empty list. No real engine has this route. */
export const setFaults: Handler = async ({ faultSource }, request) => {
  const parsed = faultsSchema.safeParse(await request.json().catch(() => null));
  if (!parsed.success)
    return failure(400, 'faults: must be a list such as ["reset,rate=0.1"]', "faults");
  try {
    faultSource.replace(parsed.data.faults.map(parseFault));
  } catch (error) {
    if (error instanceof ServiceError) return failure(400, error.message, "faults");
    throw error;
  }
  return listFaults({ faultSource } as Serving, request);
};

export const listFaults: Handler = ({ faultSource }) =>
  Response.json({ faults: faultSource.faults });

/** SGLang's, with one rank. */
export const getLoad: Handler = ({ engine: { batch, kv } }) => {
  const tokens = Math.round(batch.kvUse * kv.capacityBlocks * BLOCK_TOKENS);
  const counts = { num_reqs: batch.running + batch.waiting, num_waiting_reqs: batch.waiting };
  return Response.json([{ dp_rank: 0, ...counts, num_tokens: tokens }]);
};

/** Under vLLM's names. */
export const metrics: Handler = ({ engine, model, requests }) => {
  const { batch, kv, counters } = engine;
  const label = `{model_name=${JSON.stringify(model)}}`;
  const lines = [
    `vllm:num_requests_running${label} ${batch.running}`,
    `vllm:num_requests_waiting${label} ${batch.waiting}`,
    `vllm:kv_cache_usage_perc${label} ${batch.kvUse}`,
    `vllm:num_preemptions_total${label} ${batch.preemptions}`,
    `vllm:prefix_cache_queries_total${label} ${counters.promptTokens}`,
    `vllm:prefix_cache_hits_total${label} ${counters.cachedTokens}`,
    `vllm:prompt_tokens_total${label} ${counters.promptTokens}`,
    `vllm:generation_tokens_total${label} ${counters.generatedTokens}`,
    `vllm:cache_config_info{block_size="${BLOCK_TOKENS}",num_gpu_blocks="${kv.capacityBlocks}"} 1`,
    `simulator:requests_total ${requests.total}`,
    `simulator:requests_aborted_total ${requests.aborted}`,
    `simulator:faults_total ${requests.faults}`,
  ];
  const headers = { "Content-Type": "text/plain; version=0.0.4; charset=utf-8" };
  return new Response(`${lines.join("\n")}\n`, { headers });
};

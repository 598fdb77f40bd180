import { z } from "zod";
import { renderChat } from "./chatml.ts";
import type { Said } from "./conversation.ts";
import type { Sampled, SimulatedEngine } from "./engine.ts";
import type { Fault, FaultSource } from "./faults.ts";
import { type LogprobsMode, shownLogprob } from "./logprobs.ts";
import { type Answer, answer, understand } from "./model.ts";
import { type Policy, Unscripted } from "./policy.ts";
import { uniform } from "./random.ts";
import { lognormal } from "./random-policy.ts";
import { streamedReply } from "./streamed-reply.ts";
import type { SimulatedTokenizer } from "./tokenizer.ts";
import { type Asking, type Exchange, errorBody, type Format } from "./wires/format.ts";

export type RequestCounts = { total: number; inFlight: number; aborted: number; faults: number };

export type Serving = {
  model: string;
  maxModelLen: number;
  policy: Policy;
  latencyMs: number;
  latencySigma: number;
  jitterMs: number;
  speed: number;
  seed: number;
  /** Undefined for what each engine does by itself. */
  logprobsMode?: LogprobsMode | undefined;
  tokenizer: SimulatedTokenizer;
  engine: SimulatedEngine;
  faultSource: FaultSource;
  requests: RequestCounts;
};

/** Answers one call of the model, in whatever format, with the faults that are asked for. */
export async function serveGeneration(
  serving: Serving,
  format: Format,
  request: Request,
): Promise<Response> {
  const { requests } = serving;
  const number = requests.total++;
  requests.inFlight++;
  try {
    return await generate(serving, format, request, number);
  } catch (error) {
    if (error instanceof Refused) return failure(error.status, error.message, error.param);
    if (error instanceof Unscripted) return failure(400, error.message);
    throw error;
  } finally {
    requests.inFlight--;
    if (request.signal.aborted) requests.aborted++;
  }
}

class Refused extends Error {
  readonly status: number;
  readonly param: string | null;

  constructor(status: number, message: string, param: string | null = null) {
    super(message);
    this.status = status;
    this.param = param;
  }
}

async function generate(
  serving: Serving,
  format: Format,
  request: Request,
  number: number,
): Promise<Response> {
  const { engine, tokenizer, policy } = serving;
  const { signal } = request;
  const { asking, write, pieces, nameOf } = await readRequest(format, request);
  const promptIds = idsOf(asking, tokenizer);
  const messages = "messages" in asking.prompt ? asking.prompt.messages : null;
  const prompt = { ids: promptIds, messages };
  // What a service asks to find out how an engine is called is in no script.
  const isProbe = request.headers.get("x-request-id")?.startsWith("probe.") === true;
  const understood = isProbe ? { chat: null, turn: null } : understand(prompt, tokenizer);
  const fault = serving.faultSource.next(number, understood.turn);
  if (fault) serving.requests.faults++;
  if (fault?.kind === "status") return statusFault(fault);
  if (fault?.kind === "reset") return new Response(brokenStream(null));
  if (fault?.kind === "stall") await wait(Number.POSITIVE_INFINITY, signal);
  const maxTokens = tokensFor(serving, asking, promptIds.length);
  const answered = answer(policy, understood, prompt, asking.seed, tokenizer);
  const jitterMs = serving.jitterMs * uniform(serving.seed, -1, number);
  const spread = { median: serving.latencyMs, sigma: serving.latencySigma };
  const latencyMs = lognormal(spread, serving.seed, -2, number);
  await wait((answered.delayMs + latencyMs + jitterMs) / serving.speed, signal);
  const { salt, stopTokenIds, filters } = asking;
  const mode = serving.logprobsMode ?? asking.logprobsMode;
  const shown = (logprob: number) => shownLogprob(mode, filters, logprob);
  const stop = asking.stop.map((text) => tokenizer.encode(text));
  const { ids: outputIds, finish } = answered;
  const requestId = request.headers.get("x-request-id") ?? String(number);
  const id = nameOf?.(requestId) ?? requestId;
  const limits = { finish, maxTokens, stopTokenIds, stop };
  const call = { id, promptIds, outputIds, ...limits, salt, shown, signal };
  const told = (sampled: Sampled) => ({
    ...{ requestId, promptIds, sampled, tokenizer, model: serving.model },
    said: saidOf(answered, sampled, tokenizer),
    turn: understood.turn ?? 0,
    weightVersion: engine.weightVersion,
    running: engine.batch.running,
    waiting: engine.batch.waiting,
  });
  if (pieces) return streamedReply({ serving, call, pieces, told, fault });
  const sampled = await engine.generate(call);
  const body = write(told(fault ? spoil(fault, sampled) : sampled));
  if (body instanceof Response) return body;
  return fault ? spoiltReply(fault, JSON.stringify(body)) : Response.json(body);
}

async function readRequest(format: Format, request: Request): Promise<Exchange> {
  let body: unknown;
  try {
    body = await request.json();
  } catch (error) {
    throw new Refused(400, `the body is not JSON: ${(error as Error).message}`);
  }
  try {
    return format(body);
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error;
    const issue = error.issues[0];
    const param = issue?.path.join(".") ?? null;
    throw new Refused(400, `${param}: ${issue?.message}`, param);
  }
}

function idsOf({ prompt }: Asking, tokenizer: SimulatedTokenizer): number[] {
  if ("ids" in prompt) return prompt.ids;
  return tokenizer.encode(renderChat(prompt.messages, prompt.tools));
}

/** @throws Refused for another model, an unknown id, and what does not fit. */
function tokensFor(serving: Serving, asking: Asking, promptTokens: number): number {
  const { model, maxModelLen, tokenizer, engine } = serving;
  if (asking.model !== null && asking.model !== model) {
    throw new Refused(404, `The model \`${asking.model}\` does not exist.`, "model");
  }
  const ids = "ids" in asking.prompt ? asking.prompt.ids : [];
  const unknown = ids.find((id) => id >= tokenizer.vocabSize);
  if (unknown !== undefined) throw new Refused(400, `Token id ${unknown} is out of vocabulary`);
  const maxTokens = asking.maxTokens ?? maxModelLen - promptTokens;
  if (promptTokens >= maxModelLen || promptTokens + maxTokens > maxModelLen) {
    const limit = `This model's maximum context length is ${maxModelLen} tokens.`;
    const had = `However, you requested ${asking.maxTokens ?? 0} output tokens and your prompt contains`;
    throw new Refused(400, `${limit} ${had} ${promptTokens} input tokens.`, "input_tokens");
  }
  if (engine.kv.fits(promptTokens + maxTokens)) return maxTokens;
  throw new Refused(400, "The request is larger than the memory of the simulated engine.");
}

/** What a chat shows of what was sampled: a call only where it is whole. */
function saidOf(answered: Answer, sampled: Sampled, tokenizer: SimulatedTokenizer): Said | null {
  const { said, ids } = answered;
  if (!said || sampled.ids.length === ids.length) return said;
  const [content = ""] = tokenizer.decode(sampled.ids).split("<tool_call>");
  const whole = content.replace(/\ufffd+$/, "");
  return { content: whole, toolCalls: [], finishReason: sampled.finish };
}

export function spoil<T extends Pick<Sampled, "ids" | "logprobs">>({ kind }: Fault, sampled: T): T {
  const { ids, logprobs } = sampled;
  if (ids.length === 0) return sampled;
  if (kind === "lengths") return { ...sampled, logprobs: logprobs.slice(1) };
  if (kind === "nan") return { ...sampled, logprobs: logprobs.with(0, Number.NaN) };
  if (kind === "bad_ids") return { ...sampled, ids: ids.with(0, -1) };
  return sampled;
}

export function failure(status: number, message: string, param: string | null = null): Response {
  return Response.json(errorBody(status, message, param), { status });
}

function statusFault({ status, retryAfterS }: Fault): Response {
  const response = failure(status, `simulated fault: status ${status}`);
  if (retryAfterS !== null) response.headers.set("Retry-After", String(retryAfterS));
  return response;
}

export const GARBAGE = "\u0000<html>not what you asked for";

function spoiltReply({ kind }: Fault, text: string): Response {
  const headers = { "Content-Type": "application/json" };
  if (kind === "garbage") return new Response(GARBAGE, { headers });
  if (kind !== "truncate") return new Response(text, { headers });
  return new Response(brokenStream(text.slice(0, text.length / 2)), { headers });
}

/** A stream that fails resets the connection. Its error is `undefined`, as Bun prints any other. */
function brokenStream(before: string | null): ReadableStream {
  return new ReadableStream({
    async pull(controller) {
      if (before !== null) {
        controller.enqueue(new TextEncoder().encode(before));
        // The part is on the wire only after the stream was waited for once more.
        await Bun.sleep(1);
      }
      controller.error(undefined);
    },
  });
}

/** Ends early when the caller goes away; what is then returned reaches nobody. */
function wait(ms: number, signal: AbortSignal): Promise<void> | undefined {
  if (ms === 0 || signal.aborted) return;
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = Number.isFinite(ms) ? setTimeout(done, ms) : undefined;
    signal.addEventListener("abort", done, { once: true });
  });
}

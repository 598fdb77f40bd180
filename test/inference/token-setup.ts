import type { Backend } from "../../src/inference/engine.ts";
import type { EngineProfile, Rung } from "../../src/inference/engine-profile.ts";
import type { GenerateRequest } from "../../src/inference/generate.ts";
import { tokenEngine } from "../../src/inference/token-engine.ts";
import { byteTokenizer } from "../../src/simulator/tokenizer.ts";
import { httpReply, rawEngine } from "./raw-engine.ts";

const QUICK_RETRIES = { maxRetries: 2, backoffMs: 1, maxBackoffMs: 2 };

export const END = byteTokenizer.specialId("<|im_end|>");

/** One user message, as the simulated model's template has it. */
export const chatIds = (text: string) =>
  byteTokenizer.encode(`<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`);

export function profileOf(rung: Rung, fields: Partial<EngineProfile> = {}): EngineProfile {
  return {
    kind: "vllm",
    version: null,
    rung,
    max_model_len: 1_000,
    logprobs: true,
    logprobs_mode: null,
    stop_id_included: true,
    salt: null,
    load: [],
    control: false,
    tokenize: false,
    weight_version: null,
    passed_over: [],
    ...fields,
  };
}

/** A client of one rung, and one call of it with everything set that a call needs. */
export function tokenSetup(url: string, rung: Rung, fields: Partial<EngineProfile> = {}) {
  const client = tokenEngine(QUICK_RETRIES);
  const profile = profileOf(rung, fields);
  const backend: Backend = { id: "b1", url, model: "simulated", profile };
  const generate = (
    request: Partial<GenerateRequest> = {},
    signal = new AbortController().signal,
  ) =>
    client.generate(
      backend,
      {
        promptIds: [1, 2, 3],
        sampling: { max_tokens: 100 },
        stopTokenIds: [END],
        timeoutMs: 20_000,
        maxReplyBytes: 1_000_000,
        sessionId: "job-1",
        requestId: "job-1.0",
        ...request,
      },
      signal,
    );
  return { generate, backend, [Symbol.dispose]: () => client[Symbol.dispose]() };
}

/** A server that answers every request with the same JSON, and what it was asked. */
export async function replying(body: object | string) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const engine = await rawEngine((socket) => socket.write(httpReply(text)));
  return {
    url: engine.url,
    requests: engine.requests,
    asked: (index = 0) => bodyOf(engine.requests[index]),
    line: () => engine.requests[0]?.split("\r\n")[0],
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

const bodyOf = (request = "") => JSON.parse(request.slice(request.indexOf("\r\n\r\n")));

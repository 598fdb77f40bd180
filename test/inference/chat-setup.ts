import { type ErrorBody, ServiceError } from "../../src/errors.ts";
import type { Backend, ChatRequest } from "../../src/inference/engine.ts";
import type { EngineProfile } from "../../src/inference/engine-profile.ts";
import { openAiChat } from "../../src/inference/openai-chat.ts";

const QUICK_RETRIES = { maxRetries: 2, backoffMs: 1, maxBackoffMs: 2 };

/** What a probe finds of an engine that gives ids with its chat completions only. */
const CHAT_IDS_PROFILE: EngineProfile = {
  ...{ kind: "vllm", version: null, rung: "chat_ids", max_model_len: null, logprobs: true },
  ...{ stop_id_included: null, salt: null, load: [], control: false, tokenize: false },
  ...{ weight_version: null, passed_over: [] },
};

/** A client, and one call of it with everything set that a call needs. */
export function setup(
  url: string,
  options: { apiKey?: string; model?: string; givesIds?: boolean } = {},
) {
  const { givesIds, ...rest } = options;
  const client = openAiChat(QUICK_RETRIES);
  const profile = givesIds ? { profile: CHAT_IDS_PROFILE } : {};
  const backend: Backend = { id: "b1", url, model: "simulated", ...profile, ...rest };
  const chat = (fields: Partial<ChatRequest> = {}, signal = new AbortController().signal) =>
    client.chat(
      backend,
      {
        messages: [{ role: "user", content: "hello" }],
        tools: [],
        sampling: {},
        timeoutMs: 20_000,
        maxReplyBytes: 1_000_000,
        sessionId: "job-1",
        requestId: "job-1.0",
        ...fields,
      },
      signal,
    );
  return { chat, backend, [Symbol.dispose]: () => client[Symbol.dispose]() };
}

/** How a call failed, as the plain data that leaves the worker. */
export async function failureOf(call: Promise<unknown>): Promise<ErrorBody> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ServiceError) return error.toBody();
    throw error;
  }
  throw new Error("the call did not fail");
}

import { ServiceError } from "../errors.ts";
import { CHAT_IDS, readChatTokens } from "./chat-tokens.ts";
import type { Sampling } from "./engine.ts";
import { callEngine } from "./engine-call.ts";
import type { EngineChoice, EngineKind, Rung, TokenRung } from "./engine-profile.ts";
import type { InBandLoad, SampledTokens } from "./generate.ts";
import { PROBE_REPLY_BYTES, PROBE_RETRIES, type Probe, refusal } from "./probe-call.ts";
import type { Identity } from "./probe-identity.ts";
import { generateWith } from "./token-engine.ts";

/** The rungs of each kind, best first. */
const LADDERS: Record<Exclude<EngineChoice, "auto">, Rung[]> = {
  vllm: ["inference_generate", "completions", "completions_text_ids", "chat_ids"],
  sglang: ["sglang_generate"],
  prorl: ["prorl_generate"],
  openai: ["chat_ids", "chat"],
  text: ["chat"],
};

/**
 * ProRL's engine and SGLang share a path. SGLang refuses the other's body, while ProRL's breaks on
 * SGLang's, so that one is asked first.
 */
const WHOLE_LADDER: Rung[] = [
  "inference_generate",
  "completions",
  "completions_text_ids",
  "prorl_generate",
  "sglang_generate",
  "chat_ids",
  "chat",
];

/** Ids that every vocabulary has. */
const PROMPT_IDS = [40, 41, 42, 43, 44, 45, 46, 47];

export type ProbeReply = SampledTokens & {
  load: InBandLoad | null;
  /** Null where the reply was not streamed. */
  firstTokenMs: number | null;
};

export type Climbed = {
  rung: Rung;
  passedOver: { rung: Rung; why: string }[];
  /** What it sampled; null for chat, which is not called. */
  reply: ProbeReply | null;
};

/**
 * Tries the rungs from the top until one gives ids that hold.
 *
 * @throws ServiceError `engine_*` where the engine is in no state to tell, `token_invariant` where
 * it gives wrong ids, `invalid_field` where it is not of the kind that was named.
 */
export async function climb(
  probe: Probe,
  engine: EngineChoice,
  { kind, maxModelLen, noModels }: Identity,
): Promise<Climbed> {
  const passedOver: Climbed["passedOver"] = [];
  const rungs = noModels ? LADDERS.prorl : laddersOf(engine, kind);
  for (const rung of rungs) {
    if (rung === "chat") return { rung, passedOver, reply: null };
    try {
      const given = { maxTokens: 2, maxModelLen };
      const reply =
        rung === "chat_ids" ? await chatWithIds(probe) : await sample(probe, rung, given);
      return { rung, passedOver, reply };
    } catch (error) {
      passedOver.push({ rung, why: refusal(error) });
    }
  }
  const why = passedOver.at(-1)?.why;
  if (noModels) throw noModels;
  throw new ServiceError("invalid_field", `it does not generate as ${engine} does: ${why}`, {
    field: "engine",
    mend: "leave the engine to be found out, or name another",
  });
}

function laddersOf(engine: EngineChoice, kind: EngineKind | null): Rung[] {
  if (engine !== "auto") return LADDERS[engine];
  return kind === null ? WHOLE_LADDER : [...LADDERS[kind], "chat"];
}

/** A few tokens of a fixed prompt, sampled greedily unless `sampling` says how. */
export async function sample(
  probe: Probe,
  rung: TokenRung,
  options: {
    maxTokens: number;
    maxModelLen: number | null;
    promptIds?: number[];
    stopTokenIds?: number[];
    cacheSalt?: string;
    sampling?: Sampling;
    /** As a stream that may be silent for as long. */
    stallMs?: number;
  },
): Promise<ProbeReply> {
  const { maxTokens, maxModelLen, promptIds = PROMPT_IDS, stopTokenIds = [] } = options;
  const { cacheSalt, sampling = { temperature: 0 }, stallMs = 0 } = options;
  const { connections, backend, timeoutMs, signal } = probe;
  const request = {
    promptIds,
    sampling: { ...sampling, max_tokens: maxTokens },
    stopTokenIds,
    ...(cacheSalt !== undefined && { cacheSalt }),
    stallMs,
    timeoutMs,
    maxReplyBytes: PROBE_REPLY_BYTES,
    sessionId: "probe",
    requestId: `probe.${crypto.randomUUID()}`,
  };
  const route = { rung, maxModelLen, logprobs: false, logprobsMode: null, streams: stallMs > 0 };
  const reply = await generateWith(connections, PROBE_RETRIES, backend, route, request, signal);
  return { ...reply, firstTokenMs: reply.times.firstTokenMs };
}

async function chatWithIds(probe: Probe): Promise<ProbeReply> {
  const { connections, endpoint, backend, timeoutMs, signal } = probe;
  const messages = [{ role: "user", content: "Say yes." }];
  const body = { model: backend.model, messages, max_tokens: 2, temperature: 0, ...CHAT_IDS };
  const call = {
    endpoint,
    method: "POST" as const,
    root: "v1" as const,
    path: "/chat/completions",
    headers: {},
    body: () => body,
    requestId: `probe.${crypto.randomUUID()}`,
    timeoutMs,
    maxReplyBytes: PROBE_REPLY_BYTES,
  };
  const value = await callEngine(connections, call, PROBE_RETRIES, signal);
  return { ...readChatTokens(endpoint.shown, value), load: null, firstTokenMs: null };
}

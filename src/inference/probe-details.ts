import { ServiceError } from "../errors.ts";
import type { EngineProfile, Rung, TokenRung } from "./engine-profile.ts";
import { type LogprobsMode, logprobsModeOf, TELLING_SAMPLING } from "./logprobs-mode.ts";
import { asRecord, getFields, getText, type Probe, post, refusal } from "./probe-call.ts";
import type { Identity } from "./probe-identity.ts";
import { type ProbeReply, sample } from "./probe-ladder.ts";

/** Longer than a few blocks of any prefix cache. Units: tokens. */
const SALT_PROMPT_TOKENS = 192;

/** Enough that a stream which repeats itself is found out. */
const STREAMED_TOKENS = 32;
/** Where tokenizers part: runs of spaces, digits, accents, scripts, emoji, special tokens, line ends. */
const CANONICAL = "Héllo  wörld\n\n\t  12345 don't <|im_start|>日本語🙂\u00a0<think>\r\n  end";

/** With the spaces that tokenizers clean up where they are told to, which makes their text another one. */
const CANONICAL_WORDS = "Don't  hash\tthis : naïve , 日本語 12345 . Is n't it ?";

const LOAD_METRIC = /^(vllm|sglang)[:_]num_(requests_running|running_reqs)\b/m;

type Found = { rung: Rung; reply: ProbeReply | null; identity: Identity };

type Details = Pick<
  EngineProfile,
  | "logprobs"
  | "logprobs_mode"
  | "stop_id_included"
  | "salt"
  | "streams"
  | "load"
  | "control"
  | "tokenize"
  | "tokenizer_hash"
  | "tokenizes_chat"
>;

/** What else is worth knowing, with at most six short calls of the model. @throws ServiceError `engine_*` */
export async function learnDetails(probe: Probe, found: Found): Promise<Details> {
  const { rung, reply, identity } = found;
  const nothing = { logprobs: false, stop_id_included: null, salt: null, streams: false };
  if (!reply) return { ...nothing, load: [], control: false, tokenize: false };
  const text = { model: probe.backend.model, prompt: CANONICAL, add_special_tokens: false };
  const [metrics, paused, tokenized] = await Promise.all([
    getText(probe, "/metrics"),
    getFields(probe, "/is_paused"),
    post(probe, "/tokenize", text),
  ]);
  const load: Details["load"] = reply.load === null ? [] : ["in_band"];
  if (LOAD_METRIC.test(metrics ?? "")) load.push("metrics");
  const ways = { load, control: "is_paused" in paused || identity.kind === "sglang" };
  const { tokens } = asRecord(tokenized);
  const tokenize = Array.isArray(tokens);
  const tokenizer_hash = tokenize ? Bun.hash(JSON.stringify(tokens)).toString(16) : null;
  const logprobs = reply.logprobs !== null;
  if (rung === "chat" || rung === "chat_ids") {
    return { ...nothing, logprobs, ...ways, tokenize, tokenizer_hash };
  }
  const { maxModelLen } = identity;
  return {
    tokenizes_chat: tokenize && (await tokenizesChat(probe)),
    logprobs,
    logprobs_mode: await logprobsMode(probe, rung, reply, maxModelLen),
    stop_id_included: await stopIdIncluded(probe, rung, reply, maxModelLen),
    salt: await saltWorks(probe, rung, maxModelLen),
    streams: await streams(probe, rung, maxModelLen),
    ...ways,
    tokenize,
    tokenizer_hash,
  };
}

/** Whether messages become ids, ids text, and the text the same ids again. */
async function tokenizesChat(probe: Probe): Promise<boolean> {
  const { model } = probe.backend;
  const messages = [{ role: "user", content: CANONICAL_WORDS }];
  const asked = { model, messages, add_generation_prompt: true, add_special_tokens: false };
  const { tokens } = asRecord(await post(probe, "/tokenize", asked));
  if (!Array.isArray(tokens) || tokens.length === 0) return false;
  const ids = { model, tokens, skip_special_tokens: false };
  const shown = asRecord(await post(probe, "/detokenize", ids));
  const prompt = shown.prompt ?? shown.text;
  const again = { model, prompt, add_special_tokens: false };
  return Bun.deepEquals(asRecord(await post(probe, "/tokenize", again)).tokens, tokens);
}

/** The same first token again, under sampling that changes its log-probability if anything does. */
async function logprobsMode(
  probe: Probe,
  rung: TokenRung,
  before: ProbeReply,
  maxModelLen: number | null,
): Promise<LogprobsMode | null> {
  const [own] = before.logprobs ?? [];
  if (own === undefined) return null;
  const options = { maxTokens: 1, maxModelLen, sampling: TELLING_SAMPLING };
  const { tokenIds, logprobs } = await sample(probe, rung, options);
  const [telling] = logprobs ?? [];
  if (telling === undefined || tokenIds[0] !== before.tokenIds[0]) return null;
  return logprobsModeOf(own, telling);
}

/** The same prompt again, to stop at what came first before. */
async function stopIdIncluded(
  probe: Probe,
  rung: TokenRung,
  before: ProbeReply,
  maxModelLen: number | null,
): Promise<boolean | null> {
  const [first] = before.tokenIds;
  if (first === undefined) return null;
  const reply = await sample(probe, rung, { maxTokens: 2, maxModelLen, stopTokenIds: [first] });
  if (reply.finishReason !== "stop") return null;
  if (reply.tokenIds.length === 0) return false;
  return reply.tokenIds[0] === first ? true : null;
}

/** Twice under one salt and once under another: only the second may meet the cache. */
async function saltWorks(
  probe: Probe,
  rung: TokenRung,
  maxModelLen: number | null,
): Promise<boolean | null> {
  if (maxModelLen !== null && maxModelLen <= SALT_PROMPT_TOKENS) return null;
  const promptIds = Array.from({ length: SALT_PROMPT_TOKENS }, (_, index) => 33 + (index % 90));
  const nonce = crypto.randomUUID();
  const cached = async (salt: string) => {
    const cacheSalt = `${nonce}.${salt}`;
    const options = { maxTokens: 1, maxModelLen, promptIds, cacheSalt };
    return (await sample(probe, rung, options)).cachedTokens;
  };
  if ((await cached("a")) === null) return null;
  const same = (await cached("a")) ?? 0;
  // A cache that never hits tells nothing about salts.
  return same === 0 ? null : (await cached("b")) === 0;
}

/** A stream that is refused, or can't be put together, is none. */
async function streams(
  probe: Probe,
  rung: TokenRung,
  maxModelLen: number | null,
): Promise<boolean> {
  const { timeoutMs: stallMs } = probe;
  try {
    const reply = await sample(probe, rung, { maxTokens: STREAMED_TOKENS, maxModelLen, stallMs });
    return reply.firstTokenMs !== null;
  } catch (error) {
    if (error instanceof ServiceError && error.code === "token_invariant") return false;
    refusal(error);
    return false;
  }
}

import { ServiceError } from "../errors.ts";
import type { GenerateFinish, SampledTokens, WeightSpan } from "./generate.ts";
import type { RawTokens } from "./wires/wire.ts";

/** What a reply is held against. */
export type Expected = {
  /** Null where the engine made the prompt itself. */
  promptIds: readonly number[] | null;
  stopTokenIds: readonly number[];
  /** Null where the engine decides. */
  maxTokens: number | null;
  vocabSize?: number | undefined;
  /** Whether this engine gives log-probabilities, as its probe found. */
  logprobs: boolean;
};

const FINISH_REASONS = new Set<unknown>(["stop", "length", "abort"] satisfies GenerateFinish[]);

/** No vocabulary is as large; engines keep ids in 32 bits with a sign. */
const MAX_ID = 2 ** 31 - 1;

/** vLLM writes it where it has no log-probability, or one of minus infinity. */
const NO_LOGPROB = -9999;

/** A sampled token's probability, which rounding may put a little above 1. */
const MAX_LOGPROB = 1e-4;

/**
 * The tokens of a reply, if it agrees with itself and with the request.
 *
 * @throws ServiceError `token_invariant` that says what does not hold.
 */
export function checkTokens(shown: string, raw: RawTokens, expected: Expected): SampledTokens {
  const problem =
    idProblem(raw, expected) ??
    logprobProblem(raw, expected) ??
    countProblem(raw, expected) ??
    spanProblem(raw.weightSpans, raw.tokenIds.length);
  if (problem !== null) {
    throw new ServiceError("token_invariant", `${shown}: the reply's tokens are wrong: ${problem}`);
  }
  const tokenIds = raw.tokenIds as number[];
  const finishReason = raw.finish as GenerateFinish;
  return {
    tokenIds,
    logprobs: raw.logprobs as number[] | null,
    finishReason,
    stopTokenId: finishReason === "stop" ? stopIdOf(raw.matched, tokenIds, expected) : null,
    weightSpans: raw.weightSpans,
    weightVersion: raw.weightVersion,
    cachedTokens: raw.cachedTokens,
  };
}

function stopIdOf(matched: unknown, tokenIds: number[], { stopTokenIds }: Expected): number | null {
  if (typeof matched === "number") return matched;
  const last = tokenIds.at(-1);
  return last !== undefined && stopTokenIds.includes(last) ? last : null;
}

function idProblem(raw: RawTokens, { vocabSize, promptIds }: Expected): string | null {
  const { tokenIds } = raw;
  const maxId = vocabSize === undefined ? MAX_ID : vocabSize - 1;
  for (const [index, id] of tokenIds.entries()) {
    if (typeof id === "number" && Number.isInteger(id) && id >= 0 && id <= maxId) continue;
    return `id ${index} is ${show(id)}, not a whole number from 0 to ${maxId}`;
  }
  const seen = raw.promptIds;
  if (seen === null || promptIds === null) return null;
  if (seen.length === promptIds.length && promptIds.every((id, index) => id === seen[index])) {
    return null;
  }
  return "the engine saw another prompt than was sent";
}

function logprobProblem(raw: RawTokens, expected: Expected): string | null {
  const { tokenIds, logprobs, logprobIds } = raw;
  if (logprobs === null) {
    return expected.logprobs ? "there are no log-probabilities" : null;
  }
  if (logprobs.length !== tokenIds.length) {
    return `there are ${tokenIds.length} ids and ${logprobs.length} log-probabilities`;
  }
  for (const [index, value] of logprobs.entries()) {
    if (typeof value === "number" && value <= MAX_LOGPROB && value > NO_LOGPROB) continue;
    return `log-probability ${index} is ${show(value)}`;
  }
  const other = logprobIds?.findIndex((id, index) => id !== tokenIds[index]) ?? -1;
  if (other < 0) return null;
  return `log-probability ${other} is of ${show(logprobIds?.[other])}, not of ${tokenIds[other]}`;
}

function countProblem(raw: RawTokens, expected: Expected): string | null {
  const { tokenIds, finish, promptTokens, completionTokens, cachedTokens } = raw;
  const { promptIds, maxTokens, stopTokenIds } = expected;
  if (!FINISH_REASONS.has(finish)) return `the finish reason is ${show(finish)}`;
  if (completionTokens !== null && completionTokens !== tokenIds.length) {
    return `there are ${tokenIds.length} ids, and usage counts ${completionTokens}`;
  }
  if (promptIds !== null && promptTokens !== null && promptTokens !== promptIds.length) {
    return `the prompt has ${promptIds.length} ids, and usage counts ${promptTokens}`;
  }
  const prompt = promptIds?.length ?? promptTokens;
  if (cachedTokens !== null && prompt !== null && cachedTokens > prompt) {
    return `${cachedTokens} tokens of a prompt of ${prompt} were cached`;
  }
  if (maxTokens !== null && tokenIds.length > maxTokens) {
    return `there are ${tokenIds.length} ids, and ${maxTokens} were asked for`;
  }
  if (finish === "length" && tokenIds.length === 0) return "it ended by length without a token";
  const inside = tokenIds.findIndex((id) => stopTokenIds.includes(id as number));
  if (inside < 0 || inside === tokenIds.length - 1) return null;
  return `it went on after the stop id ${tokenIds[inside]} at ${inside}`;
}

function spanProblem(spans: WeightSpan[], tokens: number): string | null {
  let at = 0;
  for (const { start, end } of spans) {
    if (start !== at || !(end >= start)) return `a weight version spans ${start} to ${end}`;
    at = end;
  }
  if (spans.length === 0 || at === tokens) return null;
  return `weight versions span ${at} of ${tokens} tokens`;
}

function show(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 50) ?? "missing";
}

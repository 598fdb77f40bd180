import type { z } from "zod";
import { ServiceError } from "../../errors.ts";
import type { RouteRoot } from "../endpoint.ts";
import type { GenerateRequest, InBandLoad, WeightSpan } from "../generate.ts";
import type { Streamed } from "./streamed.ts";

/** What a wire format makes its request of. */
export type WireRequest = GenerateRequest & { model: string; maxTokens: number };

/** A reply as the engine wrote it: nothing in it is believed yet. */
export type RawTokens = {
  tokenIds: unknown[];
  logprobs: unknown[] | null;
  /** The ids that stand beside the log-probabilities; null where none do. */
  logprobIds: unknown[] | null;
  /** The prompt as the engine repeats it; null where it does not. */
  promptIds: unknown[] | null;
  finish: unknown;
  /** The stop id, or the stop string, that was met. */
  matched: unknown;
  promptTokens: number | null;
  completionTokens: number | null;
  cachedTokens: number | null;
  weightSpans: WeightSpan[];
  weightVersion: string | null;
  load: InBandLoad | null;
  queueMs: number | null;
};

export const NOTHING_SAID = {
  logprobIds: null,
  promptIds: null,
  matched: null,
  promptTokens: null,
  completionTokens: null,
  cachedTokens: null,
  weightSpans: [],
  weightVersion: null,
  load: null,
  queueMs: null,
} satisfies Partial<RawTokens>;

/** One way to ask an engine for tokens. */
export type Wire = {
  root: RouteRoot;
  path: string;
  /** `requestId` is new for each try, as engines refuse one that they know. */
  body(request: WireRequest, requestId: string): Record<string, unknown>;
  /** Where replies can come in pieces. */
  streamed?: Streamed;
  /** @throws ServiceError `engine_bad_reply` for another shape. */
  read(shown: string, value: unknown, request: WireRequest): RawTokens;
};

/** @throws ServiceError `engine_bad_reply` that names the field. */
export function readShape<S extends z.ZodType>(
  schema: S,
  shown: string,
  what: string,
  value: unknown,
): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const field = issue?.path.join(".") || "the reply";
  const message = `${shown}: not ${what}: ${field}: ${issue?.message}`;
  throw new ServiceError("engine_bad_reply", message);
}

const ID_TEXT = /^token_id:(\d{1,10})$/;

/** The id in `token_id:N`; anything else stays what it is, to be refused as no id. */
export function idInText(text: unknown): unknown {
  const digits = typeof text === "string" ? ID_TEXT.exec(text)?.[1] : undefined;
  return digits === undefined ? text : Number(digits);
}

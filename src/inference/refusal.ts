import { ServiceError } from "../errors.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Answer } from "./exchange.ts";

const MAX_MESSAGE_CHARS = 500;

/**
 * How engines say that prompt and answer don't fit the context.
 *
 * Source: vLLM ("This model's maximum context length is", "longer than the maximum model length", a
 * negative `max_tokens` where it computes one, "cannot be greater than max_model_len"), SGLang ("longer than the model's context length",
 * "exceeds the maximum allowed length", "max_completion_tokens is too large"), llama.cpp ("exceeds the available context size"), OpenAI
 * (the code).
 */
const CONTEXT_CODES = new Set(["context_length_exceeded", "exceed_context_size_error"]);
const CONTEXT_TEXTS = [
  /maximum context length/i,
  /longer than the (model's context length|maximum model length)/i,
  /exceeds? (the )?(model's )?(available |maximum )?context (length|size|window)/i,
  /exceeds the maximum allowed (input )?length/i,
  /max_tokens must be at least 1, got -\d/i,
  /max_tokens=\d+ cannot be greater than max_model_len/i,
  /max_(completion_)?tokens is too large/i,
];
const CONTEXT_STATUSES = new Set([400, 413, 422]);

const MENDS: Record<number, string> = {
  401: "name the variable that holds the backend's API key by --api-key-env (api_key_env)",
  403: "give an API key that may use this model",
  404: "check that the backend's URL ends in /v1 and that it serves this model",
};

/** The answer behind an `engine_refused`. */
class Refused extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`status ${status}`);
    this.status = status;
  }
}

const MISSING = new Set([404, 405, 422]);

/** Whether the engine does not know the route, the model or the form that its probe found. */
export function isUnknownThere({ cause }: ServiceError): boolean {
  return cause instanceof Refused && MISSING.has(cause.status);
}

/** With what it was refused; null where no answer of the engine's says that. */
export function refusedWith({ cause }: ServiceError): number | null {
  return cause instanceof Refused ? cause.status : null;
}

/** What an answer other than 2xx means. */
export function refusalOf(endpoint: Endpoint, answer: Answer): ServiceError {
  const { status, headers } = answer;
  const said = spokenBy(answer);
  const text = shorten(said.message, endpoint.apiKey);
  const message = `${endpoint.shown} answered ${status}${text && `: ${text}`}`;
  if (status >= 300 && status < 400) {
    const target = shorten(String(headers.location ?? "nowhere"), endpoint.apiKey);
    const mend = "give the backend's final URL; redirects are not followed";
    return new ServiceError("engine_refused", `${message} (redirect to ${target})`, { mend });
  }
  if (CONTEXT_STATUSES.has(status) && isContextOverflow(said)) {
    return new ServiceError("context_exhausted", message);
  }
  if (status === 429 || status === 503) return new ServiceError("engine_overloaded", message);
  if (status === 502 || status === 504) return new ServiceError("engine_unreachable", message);
  if (status === 408) return new ServiceError("engine_timeout", message);
  if (status >= 400 && status < 500) {
    const mend = MENDS[status];
    const cause = new Refused(status);
    return new ServiceError(
      "engine_refused",
      message,
      mend === undefined ? { cause } : { mend, cause },
    );
  }
  return new ServiceError("engine_bad_reply", message);
}

type Spoken = { message: string; codes: unknown[] };

/**
 * The error shapes of OpenAI and vLLM (`error.message`), of SGLang (`message`) and of FastAPI
 * (`detail`).
 */
function spokenBy({ body }: Answer): Spoken {
  const text = new TextDecoder().decode(body);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return { message: text, codes: [] };
  }
  const outer = asRecord(parsed);
  const inner = asRecord(outer.error);
  const message = inner.message ?? outer.message ?? outer.detail ?? outer.error ?? parsed;
  return {
    message: typeof message === "string" ? message : JSON.stringify(message),
    codes: [inner.code, inner.type, outer.code, outer.type],
  };
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function isContextOverflow({ message, codes }: Spoken): boolean {
  if (codes.some((code) => typeof code === "string" && CONTEXT_CODES.has(code))) return true;
  return CONTEXT_TEXTS.some((pattern) => pattern.test(message));
}

/** One line without the key, as some servers repeat it. */
function shorten(text: string, apiKey: string | undefined): string {
  const hidden = apiKey === undefined ? text : text.replaceAll(apiKey, "[api key]");
  const line = hidden.replace(/[\s\p{Cc}]+/gu, " ").trim();
  return line.length > MAX_MESSAGE_CHARS ? `${line.slice(0, MAX_MESSAGE_CHARS)}…` : line;
}

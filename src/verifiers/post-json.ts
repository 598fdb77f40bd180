import { pause } from "../lib/abortable.ts";
import { httpPost, ReplyTooLong } from "../lib/http-post.ts";

/** A server that a verifier depends on did not do its part. */
export class PostFailure extends Error {
  constructor(
    message: string,
    /** Trying again may help. */
    readonly passing: boolean,
  ) {
    super(message);
    this.name = "PostFailure";
  }
}

export type PostOptions = {
  headers?: Record<string, string>;
  timeoutMs: number;
  signal: AbortSignal;
};

const MAX_REPLY_BYTES = 16 * 1024 * 1024;
const MAX_SHOWN = 300;

export type Posted = { status: number; text: string; cookies: string[] };

/**
 * Posts JSON and reads what comes, of any status. Redirects are refused: an address that was allowed must not lead
 * to one that is not.
 *
 * @throws PostFailure; the abort reason of `signal` as it is.
 */
export async function post(url: string, body: unknown, options: PostOptions): Promise<Posted> {
  const { headers = {}, timeoutMs, signal } = options;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const sent = {
      url: new URL(url),
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
      maxReplyBytes: MAX_REPLY_BYTES,
    };
    const reply = await httpPost(sent, AbortSignal.any([signal, timeout]));
    const { status } = reply;
    if (status >= 300 && status < 400) throw new PostFailure("it answers with a redirect", false);
    const text = Buffer.from(reply.body).toString();
    return { status, text, cookies: reply.headers["set-cookie"] ?? [] };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof PostFailure) throw error;
    if (error instanceof ReplyTooLong) throw new PostFailure(error.message, false);
    const why = timeout.aborted ? `no answer within ${timeoutMs} ms` : (error as Error).message;
    throw new PostFailure(why, true);
  }
}

/** `post` where only JSON with a good status will do. @throws PostFailure; the abort reason. */
export async function postJson(
  url: string,
  body: unknown,
  options: PostOptions,
): Promise<{ json: unknown; cookies: string[] }> {
  const { status, text, cookies } = await post(url, body, options);
  if (status >= 200 && status < 300) return { json: parsed(text), cookies };
  const passing = status >= 500 || [408, 425, 429].includes(status);
  throw new PostFailure(`HTTP ${status}: ${text.slice(0, MAX_SHOWN)}`, passing);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new PostFailure(`the answer is no JSON: ${text.slice(0, MAX_SHOWN)}`, false);
  }
}

/** Waits between tries. Units: milliseconds. */
const PAUSES_MS = [200, 1000];

/** Tries again what may pass, a few times. @throws as `work` at last */
export async function withRetries<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (const pauseMs of PAUSES_MS) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof PostFailure && error.passing)) throw error;
    }
    await pause(pauseMs, signal);
  }
  return await work();
}

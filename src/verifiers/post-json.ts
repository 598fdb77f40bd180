import { pause } from "../lib/abortable.ts";

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
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
      redirect: "error",
      signal: AbortSignal.any([signal, timeout]),
    });
    const text = await boundedText(response);
    return { status: response.status, text, cookies: response.headers.getSetCookie() };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof PostFailure) throw error;
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

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_REPLY_BYTES) throw new PostFailure("the answer is too long", false);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
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

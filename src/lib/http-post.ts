import http, { type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import https from "node:https";
import { isIP } from "node:net";

type Post = {
  url: URL;
  /** To connect to, whatever the URL's name leads to by now; without it by the name, through the environment's proxy. */
  address?: string;
  headers: Record<string, string>;
  body: string;
  /** Of the answer's body; with 0 none of it is read. */
  maxReplyBytes: number;
};

export type Reply = { status: number; headers: IncomingHttpHeaders; body: Uint8Array };

export class ReplyTooLong extends Error {
  override readonly name = "ReplyTooLong";
}

const proxied = { keepAlive: false, maxSockets: Number.POSITIVE_INFINITY, proxyEnv: process.env };
const agents = { "http:": new http.Agent(proxied), "https:": new https.Agent(proxied) };

/**
 * One POST over a connection of its own. A redirect is an answer like any other: nothing follows it. It is built on
 * `node:http` because `fetch` runs at most 256 requests at once in a process, so that slow ones would wait for each
 * other and time out without having been sent.
 *
 * @throws Error where there is no whole answer, `ReplyTooLong`, the reason of `signal` as it is
 */
export function httpPost(post: Post, signal: AbortSignal): Promise<Reply> {
  signal.throwIfAborted();
  const { url, address, body } = post;
  const secure = url.protocol === "https:";
  const name = url.hostname.replace(/^\[|\]$/g, "");
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const request = (secure ? https : http).request({
    host: address ?? name,
    port: url.port || (secure ? 443 : 80),
    method: "POST",
    path: `${url.pathname}${url.search}`,
    headers: {
      ...post.headers,
      host: url.host,
      "accept-encoding": "identity",
      "content-length": Buffer.byteLength(body),
    },
    agent: address === undefined ? agents[secure ? "https:" : "http:"] : false,
    ...(secure && !isIP(name) ? { servername: name } : {}),
  });
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  request.on("response", (response) =>
    readReply(response, post.maxReplyBytes).then(resolve, reject),
  );
  request.on("error", reject);
  request.on("close", () => reject(new Error("the connection was closed without an answer")));
  request.end(body);
  return promise.finally(() => {
    signal.removeEventListener("abort", onAbort);
    request.destroy();
  });
}

async function readReply(response: IncomingMessage, maxBytes: number): Promise<Reply> {
  const { statusCode: status = 0, headers } = response;
  const chunks: Uint8Array[] = [];
  if (maxBytes === 0) return { status, headers, body: new Uint8Array() };
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new ReplyTooLong("the answer is too long");
    chunks.push(chunk);
  }
  if (!response.complete) throw new Error(`the connection was lost after ${bytes} bytes`);
  return { status, headers, body: Buffer.concat(chunks) };
}

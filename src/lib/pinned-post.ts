import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP } from "node:net";

type Post = {
  url: URL;
  /** The address to connect to, whatever the URL's name resolves to by now. */
  address: string;
  headers: Record<string, string>;
  body: string;
  timeoutMs: number;
};

/**
 * Posts to an address that was looked up before, and gives the status. A redirect is an answer like any other:
 * nothing follows it. Of the answer's body nothing is kept.
 *
 * @throws Error when there is no answer in time
 */
export function pinnedPost({ url, address, headers, body, timeoutMs }: Post): Promise<number> {
  const secure = url.protocol === "https:";
  const name = url.hostname.replace(/^\[|\]$/g, "");
  const options = {
    host: address,
    port: url.port || (secure ? 443 : 80),
    method: "POST",
    path: `${url.pathname}${url.search}`,
    headers: { ...headers, host: url.host, "content-length": Buffer.byteLength(body) },
    agent: false as const,
    ...(secure && !isIP(name) ? { servername: name } : {}),
  };
  return new Promise((resolve, reject) => {
    const request = (secure ? requestHttps : requestHttp)(options, (response) => {
      clearTimeout(timer);
      resolve(response.statusCode ?? 0);
      response.destroy();
    });
    const timer = setTimeout(() => request.destroy(new Error("no answer in time")), timeoutMs);
    request.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    request.end(body);
  });
}

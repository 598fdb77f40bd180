/** A server on a free port that answers each POST with what `answer` makes of its path and body. */
export function jsonServer(
  answer: (path: string, body: never, request: Request) => unknown | Promise<unknown>,
) {
  const asked: { path: string; body: unknown }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const path = new URL(request.url).pathname;
      const body = request.method === "POST" ? await request.json() : null;
      asked.push({ path, body });
      const made = await answer(path, body as never, request);
      return made instanceof Response ? made : Response.json(made);
    },
  });
  return {
    asked,
    url: `http://127.0.0.1:${server.port}`,
    [Symbol.dispose]: () => void server.stop(true),
  };
}

import { describe, expect, test } from "bun:test";
import { ApiClient } from "../../src/cli/api-client.ts";
import { UsageError } from "../../src/cli/flags.ts";
import { failureOf } from "../support/failure.ts";
import { tempDir } from "../support/temp-dir.ts";

type Seen = { method: string; path: string; body: string };

/** A server that answers everything with `answer`, on a port and on a Unix socket. */
function setup(answer: () => Response) {
  const dir = tempDir();
  const seen: Seen[] = [];
  const fetch = async (request: Request) => {
    const { pathname, search } = new URL(request.url);
    seen.push({ method: request.method, path: pathname + search, body: await request.text() });
    return answer();
  };
  const tcp = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch });
  const unix = Bun.serve({ unix: dir.file("s"), fetch });
  return {
    seen,
    tcp: `http://127.0.0.1:${tcp.port}`,
    socket: dir.file("s"),
    async [Symbol.asyncDispose]() {
      await Promise.all([tcp.stop(true), unix.stop(true)]);
      dir[Symbol.dispose]();
    },
  };
}

describe("the commands' client", () => {
  test.each(["http://[bad", "http://127.0.0.1:99999"])("refuses %s as an address", (server) => {
    expect(() => new ApiClient(server)).toThrow(UsageError);
  });

  test("speaks over TCP and over a Unix socket, and leaves out what is not asked for", async () => {
    await using t = setup(() => Response.json({ rollouts: [], next: 3 }));
    for (const server of [`${t.tcp}/`, t.socket]) {
      const client = new ApiClient(server);
      expect(await client.list({ limit: 5, state: undefined })).toEqual({ rollouts: [], next: 3 });
      await client.submit([{ instance: {} }]);
      await client.cancel("a/b", { wait_ms: 1 });
    }
    const asked = [
      { method: "GET", path: "/v1/rollouts?limit=5", body: "" },
      { method: "POST", path: "/v1/rollouts", body: '{"rollouts":[{"instance":{}}]}' },
      { method: "DELETE", path: "/v1/rollouts/a%2Fb?wait_ms=1", body: "" },
    ];
    expect(t.seen).toEqual([...asked, ...asked]);
  });

  test("gives a refusal as the server meant it", async () => {
    const body = { code: "queue_full", message: "full", boundary: "service", retryable: true };
    const error = { ...body, field: "rollouts", mend: "later" };
    await using t = setup(() => Response.json({ error }, { status: 429 }));
    expect(await failureOf(() => new ApiClient(t.tcp).status())).toEqual(error as never);
  });

  test("tells another program at that address from rolloutd", async () => {
    await using t = setup(() => new Response("<html>", { status: 404 }));
    const { code, message, mend } = await failureOf(() => new ApiClient(t.tcp).status());
    expect([code, message, mend]).toEqual([
      "server_unreachable",
      `${t.tcp} does not answer like rolloutd (HTTP 404)`,
      "check --server",
    ]);
  });

  test("says where nobody answers, and what to do", async () => {
    using dir = tempDir();
    const path = dir.file("none");
    const { code, message, mend } = await failureOf(() => new ApiClient(path).status());
    expect([code, message, mend]).toEqual([
      "server_unreachable",
      `no rolloutd answers at ${path}`,
      "start one with `rolloutd serve`, or name it with --server",
    ]);
  });
});

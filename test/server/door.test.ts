import { describe, expect, test } from "bun:test";
import { once } from "node:events";
import { mkdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { Hono } from "hono";
import { type Address, listen } from "../../src/server/listen.ts";
import type { ServerEnv } from "../../src/server/parts.ts";
import { TokenFile } from "../../src/server/tokens.ts";
import { failureOf } from "../support/failure.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const [OLD, NEW] = ["old-token-0123456789", "new-token-0123456789"];

/** A server that says who asks. */
async function setup(address: Partial<Address> & { tokens?: TokenFile | null } = {}) {
  const dir = tempDir();
  const app = new Hono<ServerEnv>();
  app.get("/who", (c) => c.text(c.env.client));
  app.get("/healthz", (c) => c.text("ok"));
  app.get("/readyz", (c) => c.text(c.env.client));
  app.get("/slow", async (c) => {
    await new Promise((resolve) => c.req.raw.signal.addEventListener("abort", resolve));
    return c.text("over");
  });
  const dropped = Promise.withResolvers<void>();
  app.get("/big", (c) => {
    c.env.keepOpen();
    c.req.raw.signal.addEventListener("abort", () => dropped.resolve());
    return c.text("x".repeat(50_000_000));
  });
  const listening = await listen(app, {
    ...{ host: "127.0.0.1", port: 0, socket: dir.file("s"), tokens: null, tls: null },
    ...{ maxRequests: 100, anonymous: false, durable: () => null },
    ...address,
  }).catch((error) => {
    dir[Symbol.dispose]();
    throw error;
  });
  const ask = async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(listening.url + path, { headers });
    return [response.status, await response.text()] as const;
  };
  return {
    ...listening,
    ask,
    dropped: dropped.promise,
    async [Symbol.asyncDispose]() {
      await listening.stop();
      dir[Symbol.dispose]();
    },
  };
}

/** The whole answer to a request of any form, from a server that closes then; `at` is a URL or a socket's path. */
async function answerTo(at: string, text: string): Promise<string> {
  const socket = at.startsWith("/") ? connect(at) : connect(Number(new URL(at).port), "127.0.0.1");
  let answer = "";
  socket.on("data", (bytes) => (answer += bytes));
  socket.end(text);
  await once(socket, "close");
  return answer;
}

type Ways = { url: string; socket: string };

/** Status and code of the answer to a head, over TCP and over the Unix socket: one rule for both gives one answer. */
async function answered({ url, socket }: Ways, head: string): Promise<string> {
  const text = `${head}\r\nConnection: close\r\n\r\n`;
  const [tcp, unix] = await Promise.all([url, socket].map((at) => answerTo(at, text)));
  const told = (answer = "") =>
    `${answer.slice(9, 12)} ${/"code":"(\w+)"/.exec(answer)?.[1] ?? ""}`.trim();
  expect([head, told(unix)]).toEqual([head, told(tcp)]);
  return told(tcp);
}

/** Looks at the file again with each request. */
function tokenFile(path: string, text: string, mode = 0o600): TokenFile {
  writeFileSync(path, text, { mode });
  return new TokenFile(path, 0);
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

test("a request that names no host is answered, and one whose host makes no address refused", async () => {
  await using it = await setup();
  expect(await answerTo(it.url, "GET /healthz HTTP/1.0\r\n\r\n")).toEndWith("\r\n\r\nok");
  const odd = ["GET /who HTTP/1.1\r\nHost: evil@127.0.0.1", "GET /who HTTP/1.1\r\nHost: [::1"];
  for (const head of [...odd, "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1"]) {
    const answer = await answerTo(it.url, `${head}\r\nConnection: close\r\n\r\n`);
    expect(answer).toStartWith("HTTP/1.1 400 ");
    expect(answer).toContain('"field":"host"');
  }
});

describe("TCP and the Unix socket, where a tunnel makes it a port, both", () => {
  const who = (...headers: string[]) => ["GET /who HTTP/1.1", ...headers].join("\r\n");

  test("answer programs and the browser's own address line", async () => {
    await using it = await setup();
    for (const host of ["localhost", "127.0.0.1:8006", "LOCALHOST:1", "[::1]:8006", "127.1.2.3"]) {
      expect(await answered(it, who(`Host: ${host}`))).toBe("200");
    }
    expect(await answered(it, who("Host: localhost:9", "Origin: http://localhost:9"))).toBe("200");
    expect(await answered(it, who("Host: localhost:9", "Sec-Fetch-Site: none"))).toBe("200");
  });

  test("refuse web pages by what browsers say of them", async () => {
    await using it = await setup();
    const local = "Host: localhost:9";
    for (const origin of ["https://evil.example", "null", "http://localhost", "http://127.0.0.1:9"])
      expect(await answered(it, who(local, `Origin: ${origin}`))).toBe("403 foreign_origin");
    for (const site of ["cross-site", "same-site", "?"])
      expect(await answered(it, who(local, `Sec-Fetch-Site: ${site}`))).toBe("403 foreign_origin");
    const preflight = ["Access-Control-Request-Method: POST", "Origin: https://evil.example"];
    const asked = ["OPTIONS /who HTTP/1.1", local, ...preflight].join("\r\n");
    expect(await answered(it, asked)).toBe("403 foreign_origin");
  });

  test("refuse names that a foreign DNS server may give to this machine", async () => {
    await using it = await setup();
    for (const host of ["evil.example", "localhost.evil.example", "10.0.0.1", "[fe80::1]", "0"])
      expect(await answered(it, who(`Host: ${host}`))).toBe("403 foreign_origin");
  });

  test("refuse a host that is several, or none", async () => {
    await using it = await setup();
    const two = [
      ["Host: localhost", "Host: evil.example"],
      ["Host: evil.example", "host: localhost"],
      ["Host: localhost", "Host: localhost"],
    ];
    for (const headers of two)
      expect(await answered(it, who(...headers))).toBe("400 invalid_field");
    const odd = ["a@localhost", "localhost@evil", "localhost, evil", "localhost/x", "localhost?x"];
    for (const host of [...odd, "localhost#x", "", "[::1", "localhost:99999999"])
      expect([host, await answered(it, who(`Host: ${host}`))]).toEqual([host, "400 invalid_field"]);
    expect(await answered(it, who("X: y"))).toBe("400");
  });

  test("refuse pages also where tokens or strangers are let in", async () => {
    using dir = tempDir();
    await using closed = await setup({ tokens: tokenFile(dir.file("t"), `a:${OLD}`) });
    await using open = await setup({ anonymous: true });
    const page = { origin: "https://evil.example" };
    expect((await closed.ask("/who", { ...bearer(OLD), ...page }))[0]).toBe(403);
    expect((await open.ask("/who", page))[0]).toBe(403);
    expect((await open.ask("/who", { host: "node7.cluster" }))[0]).toBe(200);
  });
});

describe("a port with tokens", () => {
  test("takes requests with one of them, names their client, and refuses all others", async () => {
    using dir = tempDir();
    const tokens = tokenFile(dir.file("t"), `# trainers\nverl:${OLD}\n\n${NEW}\n`);
    await using t = await setup({ tokens });
    expect(await t.ask("/who", bearer(OLD))).toEqual([200, "token:verl"]);
    const [status, unnamed] = await t.ask("/who", bearer(NEW));
    expect([status, unnamed]).toEqual([200, expect.stringMatching(/^token:token-[0-9a-f]{12}$/)]);
    const wrong = [{}, bearer(`${OLD}x`), bearer("verl"), { authorization: `Basic ${OLD}` }];
    for (const headers of wrong as Record<string, string>[]) {
      const [status, body] = await t.ask("/who", headers);
      expect([status, JSON.parse(body).error.code]).toEqual([401, "unauthorized"]);
    }
    expect((await t.ask("/healthz"))[0]).toBe(200);
    expect(await t.ask("/readyz")).toEqual([200, "probe"]);
    const local = await fetch("http://localhost/who", { unix: t.socket });
    expect(await local.text()).toBe("socket");
  });

  test("follows the file: a new token works and an old one stops, without a restart", async () => {
    using dir = tempDir();
    const tokens = tokenFile(dir.file("t"), OLD);
    await using t = await setup({ tokens });
    writeFileSync(dir.file("broken"), "short", { mode: 0o600 });
    renameSync(dir.file("broken"), dir.file("t"));
    expect((await t.ask("/who", bearer(OLD)))[0]).toBe(200);
    // It is there, and can't be read.
    rmSync(dir.file("t"));
    mkdirSync(dir.file("t"), { mode: 0o700 });
    expect((await t.ask("/who", bearer(OLD)))[0]).toBe(200);
    rmdirSync(dir.file("t"));
    expect((await t.ask("/who", bearer(OLD)))[0]).toBe(200);
    writeFileSync(dir.file("t"), NEW, { mode: 0o600 });
    expect((await t.ask("/who", bearer(NEW)))[0]).toBe(200);
    expect((await t.ask("/who", bearer(OLD)))[0]).toBe(401);
  });

  test("knows a token without a name by itself, whatever line it stands on", async () => {
    using dir = tempDir();
    const first = tokenFile(dir.file("a"), `a:${OLD}\n${NEW}\n`);
    const second = tokenFile(dir.file("b"), `# nobody\n\n${NEW}\n`);
    const name = first.nameOf(`Bearer ${NEW}`);
    expect([name, second.nameOf(`Bearer ${NEW}`)]).toEqual([expect.any(String), name]);
  });

  test("needs each token to be one client's, by a plain name", async () => {
    using dir = tempDir();
    const texts = [`a:${OLD}\nb:${OLD}`, `a:${OLD}\n${OLD}`, `:${OLD}`, `a b:${OLD}`, `ä:${OLD}`];
    for (const [index, text] of texts.entries()) {
      const failed = await failureOf(() => tokenFile(dir.file(`t${index}`), text));
      expect([text, failed.field]).toEqual([text, "token_file"]);
    }
    const same = tokenFile(dir.file("same"), `operator:${OLD}\noperator:${NEW}\n`);
    expect([OLD, NEW].map((token) => same.nameOf(`Bearer ${token}`))).toEqual([
      "operator",
      "operator",
    ]);
  });

  test("needs a file that only its owner reads, with long tokens in it", async () => {
    using dir = tempDir();
    const fieldOf = async (text: string, mode?: number) =>
      (await failureOf(() => tokenFile(dir.file(`t${text.length}${mode}`), text, mode))).field;
    expect(await fieldOf(OLD, 0o640)).toBe("token_file");
    expect(await fieldOf("# nothing\n")).toBe("token_file");
    expect(await fieldOf("short")).toBe("token_file");
    expect((await failureOf(() => new TokenFile(dir.file("none")))).field).toBe("token_file");
    mkdirSync(dir.file("folder"), { mode: 0o700 });
    expect((await failureOf(() => new TokenFile(dir.file("folder")))).field).toBe("token_file");
  });
});

describe("a port without tokens", () => {
  test("is refused where others reach it", async () => {
    for (const host of ["0.0.0.0", "192.168.1.1", "::"]) {
      expect(await failureOf(() => setup({ host }))).toMatchObject({ field: "host" });
    }
  });

  test("is served where others reach it only when the operator says so", async () => {
    await using t = await setup({ host: "0.0.0.0", anonymous: true });
    expect((await t.ask("/who"))[0]).toBe(200);
    expect((await t.ask("/who", { origin: "https://evil.example" }))[0]).toBe(403);
  });

  test("refuses web pages, and names that a foreign DNS server gives to this machine", async () => {
    await using t = await setup();
    expect((await t.ask("/who"))[0]).toBe(200);
    expect((await t.ask("/who", { origin: t.url }))[0]).toBe(200);
    for (const headers of [{ origin: "https://evil.example" }, { host: "evil.example" }]) {
      const [status, body] = await t.ask("/who", headers as unknown as Record<string, string>);
      expect([status, JSON.parse(body).error.code]).toEqual([403, "foreign_origin"]);
    }
  });
});

test("no answer leaves that the disk did not take", async () => {
  const broken = () => Promise.reject(new Error("EIO"));
  await using t = await setup({ durable: broken });
  expect((await t.ask("/who"))[0]).toBe(500);
});

test("more open requests than allowed are refused with 429", async () => {
  await using t = await setup({ maxRequests: 2 });
  const controller = new AbortController();
  const open = [1, 2].map(() =>
    fetch(`${t.url}/slow`, { signal: controller.signal }).catch(() => null),
  );
  await waitFor(async () => (await t.ask("/who"))[0] === 429, "the refusal");
  controller.abort();
  await Promise.all(open);
  await waitFor(async () => (await t.ask("/who"))[0] === 200, "room again");
});

describe("the Unix socket", () => {
  test("takes the place of a dead one, and of nothing else", async () => {
    using dir = tempDir();
    const dead = Bun.listen({ unix: dir.file("s"), socket: { data() {} } });
    dead.stop(true);
    const path = dir.file("file");
    writeFileSync(path, "precious");
    expect((await failureOf(() => setup({ socket: path }))).code).toBe("data_dir_unusable");
    expect(await Bun.file(path).text()).toBe("precious");
    await using first = await setup({ socket: dir.file("live") });
    const second = await failureOf(() => setup({ socket: first.socket }));
    expect(second.code).toBe("data_dir_in_use");
  });

  test("lies in a folder that is its owner's alone", async () => {
    using dir = tempDir();
    mkdirSync(dir.file("open"), { mode: 0o755 });
    for (const [folder, mend] of [
      [dir.file("open"), `close it: chmod 700 ${dir.file("open")}`],
      [dir.file("none"), `make it: mkdir -m 700 ${dir.file("none")}`],
    ] as const) {
      const failure = await failureOf(() => setup({ socket: `${folder}/s` }));
      expect([failure.code, failure.mend]).toEqual(["data_dir_unusable", mend]);
    }
  });
});

test("a client that waits and then does not take its answer is dropped", async () => {
  await using t = await setup({ idleTimeoutS: 1 });
  const { host, hostname, port } = new URL(t.url);
  const client = connect(Number(port), hostname).pause();
  client.write(`GET /big HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
  await t.dropped;
  const closed = once(client, "close");
  client.destroy();
  await closed;
}, 20_000);

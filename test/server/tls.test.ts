import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { listen } from "../../src/server/listen.ts";
import { TokenFile } from "../../src/server/tokens.ts";
import { failureOf } from "../support/failure.ts";
import { tempDir } from "../support/temp-dir.ts";
import { setup } from "./setup.ts";

const CERTIFICATE = join(import.meta.dir, "../support/tls/cert.pem");
const KEY = join(import.meta.dir, "../support/tls/key.pem");
const TOKEN = "a-token-of-24-characters";

test("with a certificate the port speaks TLS only, to who has a token, and others' APIs name it so", async () => {
  await using t = setup({ compat: true });
  using dir = tempDir();
  writeFileSync(dir.file("tokens"), TOKEN, { mode: 0o600 });
  const service = await listen(t.app, {
    ...{ host: "127.0.0.1", port: 0, socket: dir.file("s"), maxRequests: 10, anonymous: false },
    tokens: new TokenFile(dir.file("tokens")),
    tls: { cert: readFileSync(CERTIFICATE, "utf8"), key: readFileSync(KEY, "utf8") },
    durable: () => null,
  });
  const tls = { ca: readFileSync(CERTIFICATE, "utf8") };
  const ask = (path: string, token = TOKEN) =>
    fetch(service.url + path, { tls, headers: { authorization: `Bearer ${token}` } });
  expect(service.url).toStartWith("https://127.0.0.1:");
  expect((await ask("/v1/status")).status).toBe(200);
  expect((await ask("/v1/status", "another-of-24-characters")).status).toBe(401);
  const [instance] = (await (await ask("/server_instances")).json()) as { url: string }[];
  expect(instance?.url).toBe(service.url);
  // Neither a client that trusts another nor one that speaks in plain text comes in.
  const stranger = await fetch(`${service.url}/healthz`).catch((error) => error.code);
  expect(stranger).toBe("DEPTH_ZERO_SELF_SIGNED_CERT");
  const plain = await fetch(`${service.url.replace("https", "http")}/healthz`).catch(() => null);
  expect(plain).toBeNull();
  await service.stop();
});

test("what is no certificate is refused by its name, and takes no port", async () => {
  await using t = setup();
  using dir = tempDir();
  const address = { host: "127.0.0.1", port: 0, socket: dir.file("s"), maxRequests: 10 };
  const tls = { cert: "no certificate", key: "no key" };
  const { code, field } = await failureOf(() =>
    listen(t.app, { ...address, anonymous: false, tokens: null, tls, durable: () => null }),
  );
  expect([code, field]).toEqual(["invalid_field", "tls_cert"]);
});

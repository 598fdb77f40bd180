import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { addImage } from "../../../src/sandbox/images/catalogue.ts";
import { parseRegistries } from "../../../src/sandbox/images/registry/registries.ts";
import { failureOf } from "../../support/failure.ts";
import { fakeRegistry } from "../../support/registry.ts";
import { NO_ABORT, setup as setupImages } from "./setup.ts";

setDefaultTimeout(60_000);

type Odd = Parameters<typeof fakeRegistry>[0];

/** An image cache that may ask one registry, with an image `tool` in it. */
async function setup(odd?: Odd, others = "") {
  const t = await setupImages();
  const registry = fakeRegistry(odd);
  const registries = parseRegistries(`${registry.entry}${others}`);
  t.settings.policy = { ...t.settings.policy, registries };
  const update = (content: string) => {
    const root = t.folder(`remote-${content}`, content);
    const { stdout } = Bun.spawnSync(["tar", "-czf", "-", "-C", root, "."]);
    return registry.serve(stdout);
  };
  update("old");
  const uri = `docker://${registry.host}/lab/tool:1`;
  const manifests = () => registry.asked.filter(({ path }) => path.includes("/manifests/")).length;
  return {
    ...t,
    registry,
    uri,
    update,
    pulls: manifests,
    content: async (image: string) => {
      const { path, lock } = await t.images.acquire(image, NO_ABORT);
      using _held = lock;
      return readFileSync(join(path, "etc/content"), "utf8");
    },
    async [Symbol.asyncDispose]() {
      registry[Symbol.dispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

describe("an image from a registry", () => {
  test("is pulled once, by however many jobs, and stays what it was until it is added again", async () => {
    await using t = await setup();
    const all = await Promise.all(Array.from({ length: 5 }, () => t.content(t.uri)));
    expect([all, t.pulls()]).toEqual([Array(5).fill("old"), 1]);
    t.update("new");
    expect([await t.content(t.uri), t.pulls()]).toEqual(["old", 1]);
    const added = await addImage(t.images, t.uri, undefined, NO_ABORT);
    expect(added).toMatchObject({ names: ["tool-1"], origin: t.uri });
    const now = [await t.content(t.uri), await t.content("tool-1"), t.pulls()];
    expect(now).toEqual(["new", "new", 2]);
    expect(t.leftovers()).toEqual([]);
  });

  test("has one address however often it is pulled, so that a name survives pruning", async () => {
    await using t = await setup();
    const { digest } = await addImage(t.images, t.uri, "tool", NO_ABORT);
    await t.images.cache.prune(0).removed;
    expect([await t.content("tool"), t.present(), t.pulls()]).toEqual(["old", [digest], 2]);
    await t.images.cache.prune(0).removed;
    t.update("new");
    const moved = await failureOf(() => t.content("tool"));
    expect(moved).toMatchObject({ code: "image_invalid", mend: expect.stringContaining(t.uri) });
    expect(await addImage(t.images, t.uri, "tool", NO_ABORT)).toMatchObject({ names: ["tool"] });
    expect(await t.content("tool")).toBe("new");
  });

  test("is found by its digest, by an index of platforms, and as a SIF", async () => {
    await using t = await setup();
    const digest = t.update("other");
    const { host } = t.registry;
    expect(await t.content(`docker://${host}/lab/tool@${digest}`)).toBe("other");
    const ours = { os: "linux", architecture: process.arch === "x64" ? "amd64" : "arm64" };
    const manifests = [
      { digest: `sha256:${"0".repeat(64)}`, platform: { os: "linux", architecture: "s390x" } },
      { digest, platform: ours },
    ];
    t.registry.serveManifest(JSON.stringify({ schemaVersion: 2, manifests }));
    expect(await t.content(`docker://${host}/lab/tool:2`)).toBe("other");
    const sif = t.registry.put(readFileSync(await t.sif("single")));
    const config = { ...t.registry.put("{}"), mediaType: "application/vnd.sylabs.sif.config.v1" };
    const layer = { ...sif, mediaType: "application/vnd.sylabs.sif.layer.v1.sif" };
    t.registry.serveManifest(JSON.stringify({ schemaVersion: 2, config, layers: [layer] }));
    expect(await t.content(`oras://${host}/lab/tool:3`)).toBe("single");
  });

  test("that can't be had says whose fault it is, and leaves nothing", async () => {
    let answer: (url: URL) => Response | null = () => null;
    await using t = await setup((_request, url) => answer(url));
    const status = (code: number) => () => new Response("", { status: code });
    const text = (body: string) => (url: URL) =>
      url.pathname.includes("/manifests/") ? new Response(body) : null;
    const cases = [
      [status(503), "image_unreachable", true],
      [status(429), "image_unreachable", true],
      [status(404), "image_not_found", false],
      [status(401), "image_not_found", false],
      [status(403), "image_not_found", false],
      [text("<html>"), "image_invalid", false],
      [text("{}"), "image_invalid", false],
      [text(`{"config":{},"layers":[${"[".repeat(100_000)}`), "image_invalid", false],
      [text("x".repeat(5_000_000)), "image_unreachable", true],
      [
        (url: URL) => (url.pathname.includes("/blobs/") ? new Response("x") : null),
        "image_unreachable",
        true,
      ],
    ] as const;
    for (const [index, [given, code, retryable]] of cases.entries()) {
      answer = given;
      const failed = await failureOf(() => t.content(`${t.uri}.${index}`));
      expect({ index, ...failed }).toMatchObject({ index, code, retryable });
      expect(failed.message).toContain(`${t.uri}.${index}`);
      if (code === "image_unreachable") expect(failed.mend).toContain("task_images");
    }
    expect([t.present(), t.leftovers()]).toEqual([[], []]);
  });

  test("that is larger than the cache is refused before it is fetched", async () => {
    await using t = await setup();
    const layers = [{ digest: `sha256:${"0".repeat(64)}`, size: 2 ** 40, mediaType: "x" }];
    const config = { ...t.registry.put("{}"), mediaType: "x" };
    t.registry.serveManifest(JSON.stringify({ schemaVersion: 2, config, layers }));
    expect((await failureOf(() => t.content(t.uri))).code).toBe("image_invalid");
    expect(t.registry.asked.length).toBe(1);
  });
});

describe("a pull is held to the operator's registries:", () => {
  test("no other one is asked for anything", async () => {
    await using t = await setup();
    using other = fakeRegistry();
    const port = other.host.split(":")[1];
    const forms = [
      ...[
        other.host,
        `localhost:${port}`,
        `127.1:${port}`,
        `0x7f000001:${port}`,
        `LOCALHOST:${port}`,
      ],
      ...[
        `2130706433:${port}`,
        `[::1]:${port}`,
        `[::ffff:127.0.0.1]:${port}`,
        `[::127.0.0.1]:${port}`,
      ],
      ...[`user:secret@${other.host}`, `${t.registry.host}@${other.host}`, `localhost.:${port}`],
      ...["169.254.169.254", "metadata.google.internal", `0:${port}`, `0177.0.0.1:${port}`],
      ...[`${t.registry.host}#@${other.host}`, `${t.registry.host}\\@${other.host}`],
    ];
    for (const form of forms) {
      for (const scheme of ["docker", "oras"]) {
        const failed = await failureOf(() => t.content(`${scheme}://${form}/x:1`));
        const isHeld = ["address_forbidden", "image_invalid"].includes(failed.code);
        expect([form, failed.code, isHeld]).toEqual([form, failed.code, true]);
      }
    }
    expect([other.asked, t.registry.asked, t.present(), t.leftovers()]).toEqual([[], [], [], []]);
  });

  test("neither a realm nor a redirect leads to another address, nor takes a login or token there", async () => {
    using other = fakeRegistry();
    const login = Buffer.from("me:secret").toString("base64");
    let answer: (url: URL) => Response | null = () => null;
    await using t = await setup((_request, url) => answer(url));
    const home = t.file("home/.docker");
    Bun.spawnSync(["mkdir", "-p", home]);
    writeFileSync(
      join(home, "config.json"),
      JSON.stringify({ auths: { [t.registry.host]: { auth: login } } }),
    );
    const realm = (to: string) => () =>
      new Response("", {
        status: 401,
        headers: { "www-authenticate": `Bearer realm="${to}/token",service="s",scope="x"` },
      });
    const redirect = (to: string, what: string) => (url: URL) =>
      url.pathname.includes(what)
        ? new Response("", { status: 307, headers: { location: to } })
        : null;
    const port = other.host.split(":")[1];
    const places = [
      ...[
        other.entry,
        `http://localhost:${port}`,
        `http://[::ffff:127.0.0.1]:${port}`,
        "file:///etc",
      ],
      ...[
        `http://${t.registry.host}@${other.host}`,
        `https://${t.registry.host}`,
        "http://169.254.169.254",
      ],
      ...[`//${other.host}/x`, "gopher://x", `http://2130706433:${port}`],
      `blob:http://${t.registry.host}`,
    ];
    using _home = environment({ HOME: t.file("home"), DOCKER_CONFIG: undefined });
    for (const [index, place] of places.entries()) {
      const answers = [redirect(place, "/manifests/"), redirect(place, "/blobs/")];
      if (!place.startsWith("//")) answers.push(realm(place));
      for (const given of answers) {
        answer = given;
        const failed = await failureOf(() => t.content(`${t.uri}.${index}`));
        expect([place, failed.code]).toEqual([place, "address_forbidden"]);
      }
    }
    expect(other.asked).toEqual([]);
    const told = t.registry.asked.filter(({ authorization }) => authorization !== null);
    expect(told).toEqual([]);
  });

  test("a login goes to the token service that the operator named, and its token to the registry alone", async () => {
    const login = Buffer.from("me:secret").toString("base64");
    using tokens = fakeRegistry(() => Response.json({ token: "t-123" }));
    using storage = fakeRegistry();
    await using t = await setup((request, url) => {
      if (request.headers.get("authorization") !== "Bearer t-123") {
        const challenge = `Bearer realm="${tokens.entry}/token",service="lab"`;
        return new Response("", { status: 401, headers: { "www-authenticate": challenge } });
      }
      if (!url.pathname.includes("/blobs/")) return null;
      const location = storage.entry + url.pathname;
      return new Response("", { status: 302, headers: { location } });
    }, `+${tokens.entry}+${storage.entry}`);
    const root = t.folder("layer", "kept");
    const { stdout } = Bun.spawnSync(["tar", "-czf", "-", "-C", root, "."]);
    t.registry.serve(stdout);
    storage.serve(stdout);
    Bun.spawnSync(["mkdir", "-p", t.file("home/.apptainer")]);
    const logins = { auths: { [t.registry.host]: { auth: login }, "other:1": { auth: "eDp5" } } };
    writeFileSync(t.file("home/.apptainer/docker-config.json"), JSON.stringify(logins));
    using _home = environment({ HOME: t.file("home"), DOCKER_CONFIG: undefined });
    expect(await t.content(t.uri)).toBe("kept");
    expect(tokens.asked).toEqual([
      {
        path: "/token?service=lab&scope=repository%3Alab%2Ftool%3Apull",
        authorization: `Basic ${login}`,
      },
    ]);
    const given = t.registry.asked.map(({ authorization }) => authorization);
    expect(given).toEqual([null, ...Array(given.length - 1).fill("Bearer t-123")]);
    expect(storage.asked.map(({ authorization }) => authorization)).toEqual([null, null]);
  });

  test("what a registry gave before is used without asking it, also where it is no longer allowed", async () => {
    await using t = await setup();
    expect(await t.content(t.uri)).toBe("old");
    t.settings.policy = { ...t.settings.policy, registries: [] };
    expect([await t.content(t.uri), t.pulls()]).toEqual(["old", 1]);
    expect((await failureOf(() => t.content(`${t.uri}.2`))).code).toBe("address_forbidden");
  });
});

/** Sets variables for as long as the result lives. */
function environment(values: Record<string, string | undefined>): Disposable {
  const before = Object.keys(values).map((name) => [name, process.env[name]] as const);
  const set = (name: string, value: string | undefined) => {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  };
  for (const [name, value] of Object.entries(values)) set(name, value);
  return {
    [Symbol.dispose]() {
      for (const [name, value] of before) set(name, value);
    },
  };
}

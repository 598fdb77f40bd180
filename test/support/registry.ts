import { createHash } from "node:crypto";

type Answer = Response | null | undefined;

/**
 * A registry of images over plain HTTP, with one image in it, that remembers who asked for what.
 *
 * @param odd answers in its place where it gives anything
 */
export function fakeRegistry(
  odd: (request: Request, url: URL) => Answer | Promise<Response> = () => null,
) {
  const asked: { path: string; authorization: string | null }[] = [];
  const contents = new Map<string, Uint8Array>();
  let manifest = "{}";
  const put = (content: Uint8Array | string) => {
    const bytes = Buffer.from(content);
    const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
    contents.set(digest, bytes);
    return { digest, size: bytes.length };
  };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const url = new URL(request.url);
      const authorization = request.headers.get("authorization");
      asked.push({ path: url.pathname + url.search, authorization });
      const instead = odd(request, url);
      if (instead) return instead;
      const [, what, reference = ""] = /\/(manifests|blobs)\/([^/]+)$/.exec(url.pathname) ?? [];
      const found = contents.get(reference) ?? (what === "manifests" ? manifest : undefined);
      return found === undefined ? new Response("", { status: 404 }) : new Response(found);
    },
  });
  return {
    host: `127.0.0.1:${server.port}`,
    /** As `--registries` names it. */
    entry: `http://127.0.0.1:${server.port}`,
    asked,
    put,
    /** Makes a tar archive, maybe packed, the one layer of the image. */
    serve(layer: Uint8Array, mediaType = "application/vnd.docker.image.rootfs.diff.tar.gzip") {
      const config = put(
        JSON.stringify({
          ...{ architecture: "amd64", os: "linux", config: {} },
          rootfs: { type: "layers", diff_ids: [diffIdOf(layer)] },
        }),
      );
      manifest = JSON.stringify({
        ...{ schemaVersion: 2, mediaType: "application/vnd.docker.distribution.manifest.v2+json" },
        config: { ...config, mediaType: "application/vnd.docker.container.image.v1+json" },
        layers: [{ ...put(layer), mediaType }],
      });
      return put(manifest).digest;
    },
    serveManifest(text: string) {
      manifest = text;
    },
    manifest: () => manifest,
    [Symbol.dispose]() {
      server.stop(true);
    },
  };
}

export type FakeRegistry = ReturnType<typeof fakeRegistry>;

function diffIdOf(layer: Uint8Array): string {
  const isGzip = layer[0] === 0x1f && layer[1] === 0x8b;
  const tar = isGzip ? Bun.gunzipSync(Buffer.from(layer)) : layer;
  return `sha256:${createHash("sha256").update(tar).digest("hex")}`;
}

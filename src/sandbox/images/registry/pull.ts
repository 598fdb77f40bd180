import { createHash } from "node:crypto";
import { createWriteStream, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { ServiceError } from "../../../errors.ts";
import { parseImageName } from "./image-name.ts";
import { type Registry, registryOf } from "./registries.ts";
import { parseJson, RegistryClient } from "./registry-client.ts";

const OCI = "application/vnd.oci.image";
const DOCKER = "application/vnd.docker.distribution.manifest";
const INDEXES = [`${OCI}.index.v1+json`, `${DOCKER}.list.v2+json`];
const MANIFESTS = [`${OCI}.manifest.v1+json`, `${DOCKER}.v2+json`];
const SIF_LAYER = "application/vnd.sylabs.sif.layer.v1.sif";
const ARCHITECTURE = { x64: "amd64", arm64: "arm64" }[process.arch as string] ?? process.arch;
const MAX_LAYERS = 512;

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);
const blobSchema = z.object({ mediaType: z.string(), digest, size: z.int().min(0) });
const indexSchema = z.object({
  manifests: z
    .array(
      z.object({
        digest,
        platform: z.object({ os: z.string(), architecture: z.string() }).nullish(),
      }),
    )
    .min(1),
});
const manifestSchema = z.object({
  config: blobSchema,
  layers: z.array(blobSchema).min(1).max(MAX_LAYERS),
});
type Manifest = z.output<typeof manifestSchema>;
type Blob = z.output<typeof blobSchema>;

export type PullOptions = {
  /** Where what is pulled goes. */
  folder: string;
  registries: readonly Registry[];
  /** Units: bytes, as they are sent. */
  maxBytes: number;
  signal: AbortSignal;
};

/** What was pulled, for a program that then needs no network. */
export type Pulled = { kind: "oci"; location: string } | { kind: "sif"; location: string };

/**
 * Fetches an image by our own hands, so that each connection is one that the operator allows, whatever a registry
 * answers. What comes is compared with its digests.
 *
 * @throws ServiceError `address_forbidden`, `image_invalid`, `image_unreachable`, `image_not_found`
 */
export async function pullImage(uri: string, options: PullOptions): Promise<Pulled> {
  const name = parseImageName(uri);
  const client = new RegistryClient(name, registryOf(name, options.registries), options.signal);
  const manifest = await readManifest(client, name.reference);
  const total = manifest.layers.reduce((sum, { size }) => sum + size, manifest.config.size);
  if (total > options.maxBytes) {
    const mend = "raise image_cache_bytes, or choose a smaller image";
    throw new ServiceError("image_invalid", `${uri} has ${total} bytes, more than fit`, { mend });
  }
  const fetchTo = (blob: Blob, path: string) => fetchBlob(client, blob, path, options.signal);
  const sif = manifest.layers.find(({ mediaType }) => mediaType === SIF_LAYER);
  if (sif) {
    const location = join(options.folder, "image.sif");
    await fetchTo(sif, location);
    return { kind: "sif", location };
  }
  const location = join(options.folder, "layout");
  const blobs = join(location, "blobs", "sha256");
  mkdirSync(blobs, { recursive: true });
  const seen = new Set<string>();
  for (const blob of [manifest.config, ...manifest.layers]) {
    if (seen.has(blob.digest)) continue;
    seen.add(blob.digest);
    await fetchTo(blob, join(blobs, blob.digest.slice(7)));
  }
  writeLayout(location, blobs, manifest);
  return { kind: "oci", location };
}

async function readManifest(client: RegistryClient, reference: string): Promise<Manifest> {
  const top = await verified(client, reference, [...INDEXES, ...MANIFESTS]);
  const index = indexSchema.safeParse(top);
  const ours = index.data?.manifests.find(
    ({ platform }) => platform?.os === "linux" && platform.architecture === ARCHITECTURE,
  );
  if (index.success && !ours) {
    throw new ServiceError("image_not_found", `the image has no variant for ${ARCHITECTURE}`);
  }
  const parsed = manifestSchema.safeParse(
    ours ? await verified(client, ours.digest, MANIFESTS) : top,
  );
  if (parsed.success) return parsed.data;
  const why = parsed.error.issues[0];
  const message = `the registry's manifest is none: ${why?.path.join(".")} ${why?.message}`;
  throw new ServiceError("image_invalid", message);
}

async function verified(client: RegistryClient, reference: string, types: string[]) {
  const bytes = await client.manifest(reference, types);
  if (reference.startsWith("sha256:") && sha256(bytes) !== reference) throw otherContent(reference);
  return parseJson(bytes);
}

async function fetchBlob(
  client: RegistryClient,
  blob: Blob,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  const response = await client.blob(blob.digest);
  const hash = createHash("sha256");
  let left = blob.size;
  const measured = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      left -= chunk.length;
      hash.update(chunk);
      if (left < 0) done(otherContent(blob.digest));
      else done(null, chunk);
    },
  });
  try {
    await pipeline(response, measured, createWriteStream(path, { mode: 0o600 }), { signal });
  } catch (error) {
    signal.throwIfAborted();
    const { code, message } = error as NodeJS.ErrnoException;
    // A disk that is full is no fault of the registry's.
    if (error instanceof ServiceError || /^(ENOSPC|EDQUOT|EFBIG)$/.test(code ?? "")) throw error;
    const why = `the registry's answer broke off: ${message}`;
    throw new ServiceError("image_unreachable", why, { cause: error });
  }
  if (left !== 0 || `sha256:${hash.digest("hex")}` !== blob.digest) throw otherContent(blob.digest);
}

/** By the names of OCI, whose configuration and layers are Docker's. */
function writeLayout(location: string, blobs: string, { config, layers }: Manifest): void {
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFESTS[0],
      config: { ...config, mediaType: `${OCI}.config.v1+json` },
      layers: layers.map((layer) => ({ ...layer, mediaType: layerType(layer.mediaType) })),
    }),
  );
  const own = { mediaType: MANIFESTS[0], digest: sha256(manifest), size: manifest.length };
  writeFileSync(join(blobs, own.digest.slice(7)), manifest);
  writeFileSync(join(location, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
  writeFileSync(
    join(location, "index.json"),
    JSON.stringify({ schemaVersion: 2, manifests: [own] }),
  );
}

function layerType(mediaType: string): string {
  const packed = /[.+](gzip|zstd)$/.exec(mediaType)?.[1];
  return `${OCI}.layer.v1.tar${packed === undefined ? "" : `+${packed}`}`;
}

function sha256(bytes: Buffer): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

function otherContent(wanted: string): ServiceError {
  const message = `the registry gives other content than ${wanted}`;
  return new ServiceError("image_unreachable", message);
}

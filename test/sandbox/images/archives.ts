import { createHash } from "node:crypto";
import { makeTar, type TarMember } from "../../support/tar.ts";

type Blob = { digest: string; bytes: Buffer };

function blob(content: Buffer | object): Blob {
  const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content));
  return { digest: createHash("sha256").update(bytes).digest("hex"), bytes };
}

function configOf(layers: Blob[]): Blob {
  const diff_ids = layers.map(({ digest }) => `sha256:${digest}`);
  return blob({ architecture: "amd64", os: "linux", rootfs: { type: "layers", diff_ids } });
}

const file = (name: string, bytes: Buffer): TarMember => ({ name, content: bytes.toString() });

/** As `docker save` writes it. */
export function dockerArchive(contents: Buffer[]): Buffer {
  const layers = contents.map(blob);
  const config = configOf(layers);
  const Layers = layers.map(({ digest }) => `${digest}/layer.tar`);
  const manifest = [{ Config: `${config.digest}.json`, RepoTags: ["made:here"], Layers }];
  return makeTar([
    file(`${config.digest}.json`, config.bytes),
    ...layers.map(({ digest, bytes }) => file(`${digest}/layer.tar`, bytes)),
    file("manifest.json", Buffer.from(JSON.stringify(manifest))),
  ]);
}

/** The layout of the OCI image specification, in a tar. */
export function ociArchive(contents: Buffer[]): Buffer {
  const layers = contents.map(blob);
  const config = configOf(layers);
  const described = ({ digest, bytes }: Blob, kind: string) => ({
    mediaType: `application/vnd.oci.image.${kind}`,
    digest: `sha256:${digest}`,
    size: bytes.length,
  });
  const manifest = blob({
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    config: described(config, "config.v1+json"),
    layers: layers.map((layer) => described(layer, "layer.v1.tar")),
  });
  const index = { schemaVersion: 2, manifests: [described(manifest, "manifest.v1+json")] };
  return makeTar([
    file("oci-layout", Buffer.from('{"imageLayoutVersion":"1.0.0"}')),
    file("index.json", Buffer.from(JSON.stringify(index))),
    { name: "blobs/", type: "5" },
    { name: "blobs/sha256/", type: "5" },
    ...[config, manifest, ...layers].map(({ digest, bytes }) =>
      file(`blobs/sha256/${digest}`, bytes),
    ),
  ]);
}

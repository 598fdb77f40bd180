import { expect, test } from "bun:test";
import { parseBody } from "../../src/protocol/parse.ts";
import { submitSchema } from "../../src/protocol/rollout.ts";
import { defaultName, parseReference } from "../../src/sandbox/images/reference.ts";
import { failureOf } from "../support/failure.ts";

const REFERENCES: [image: string, kind: string][] = [
  ["python-3.12_a", "name"],
  ["/shared/math.sif", "path"],
  ["/", "path"],
  ["/with space/and:colon.tar", "path"],
  ["docker-archive:/a.tar", "archive"],
  ["oci-archive:/a b.tar", "archive"],
  ["docker://python:3.12", "registry"],
  ["oras://registry:5000/image@sha256:abc", "registry"],
];

const NO_REFERENCES = [
  ...["", " ", "-rf", ".hidden", "a/b", "./a.sif", "a b", "a\nb", "name:tag", "x".repeat(129)],
  ...[
    "docker-archive:a.tar",
    "docker-archive:",
    "docker:/a",
    "docker://",
    "docker://-x",
    "docker://a b",
  ],
  ...["docker-daemon:x", "https://host/a.sif", "http://host/a", "file:///a", "DOCKER://a"],
  ...[
    "library://user/collection/image",
    "shub://user/image",
    "oci:/folder",
    "oci:///folder",
    "ftp://a",
  ],
  ...["docker-daemon://a", "containers-storage:a", "dir:/a", "instance://a"],
];

const submit = (image: string) =>
  parseBody(submitSchema, { rollouts: [{ instance: { data_source: "math" }, image }] });

test("what a request may name as its image is what can be taken apart", async () => {
  for (const [image, kind] of REFERENCES) {
    expect([image, parseReference(image).kind]).toEqual([image, kind as "name"]);
    expect(submit(image).rollouts[0]?.image).toBe(image);
  }
  for (const image of NO_REFERENCES) {
    expect((await failureOf(() => parseReference(image))).code).toBe("image_invalid");
    const refused = await failureOf(() => submit(image));
    expect(refused).toMatchObject({ code: "invalid_field", field: "rollouts[0].image" });
  }
});

test("a name is made from the last part of a reference", () => {
  const names = [
    ["/shared/math.sif", "math"],
    ["/shared/root.tar.gz", "root"],
    ["/shared/rootfs/", "rootfs"],
    ["docker-archive:/a/b.tar", "b"],
    ["docker://ghcr.io/some/python:3.12-slim", "python-3.12-slim"],
    ["docker://image@sha256:0123", "image-sha256-0123"],
    ["/", ""],
  ] as const;
  for (const [reference, name] of names) expect(defaultName(reference)).toBe(name);
});

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { addImage } from "../../../src/sandbox/images/catalogue.ts";
import { failureOf } from "../../support/failure.ts";
import { NO_ABORT, setup as setupImages } from "./setup.ts";

setDefaultTimeout(60_000);

const URI = "docker://registry.example/tool:1";

/** A stand-in for Apptainer that "pulls" the folder `remote`, or fails with what `refusal` says. */
async function setup() {
  const t = await setupImages();
  const script = `#!/bin/sh
echo "$*" >>${t.file("pulls")}
[ -e ${t.file("refusal")} ] && { cat ${t.file("refusal")} >&2; exit 255; }
cp -a ${t.file("remote")} "$4"
mkdir -p "$4/.singularity.d"; date +%N >"$4/.singularity.d/labels.json"
`;
  writeFileSync(t.file("bin/pulling"), script, { mode: 0o755 });
  t.folder("remote", "old");
  t.settings.apptainer = t.file("bin/pulling");
  const log = t.file("pulls");
  return {
    ...t,
    pulls: () => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n").length : 0),
    refuse: (words: string) => writeFileSync(t.file("refusal"), words),
    update: () => writeFileSync(t.file("remote/etc/content"), "new"),
    content: async (image: string) => {
      const { path, lock } = await t.images.acquire(image, NO_ABORT);
      using _held = lock;
      return readFileSync(join(path, "etc/content"), "utf8");
    },
  };
}

describe("an image from a registry", () => {
  test("is pulled once, by however many jobs, and stays what it was until it is added again", async () => {
    await using t = await setup();
    const all = await Promise.all(Array.from({ length: 5 }, () => t.content(URI)));
    expect([all, t.pulls()]).toEqual([Array(5).fill("old"), 1]);
    t.update();
    expect([await t.content(URI), t.pulls()]).toEqual(["old", 1]);
    const added = await addImage(t.images, URI, undefined, NO_ABORT);
    expect(added).toMatchObject({ names: ["tool-1"], origin: URI });
    expect([await t.content(URI), await t.content("tool-1"), t.pulls()]).toEqual(["new", "new", 2]);
  });

  test("has one address however often it is pulled, so that a name survives pruning", async () => {
    await using t = await setup();
    const { digest } = await addImage(t.images, URI, "tool", NO_ABORT);
    await t.images.cache.prune(0).removed;
    expect([await t.content("tool"), t.present(), t.pulls()]).toEqual(["old", [digest], 2]);
    await t.images.cache.prune(0).removed;
    t.update();
    const moved = await failureOf(() => t.content("tool"));
    expect(moved).toMatchObject({ code: "image_invalid", mend: expect.stringContaining(URI) });
    expect(await addImage(t.images, URI, "tool", NO_ABORT)).toMatchObject({ names: ["tool"] });
    expect(await t.content("tool")).toBe("new");
  });

  test("added again under the name that was made for it takes the name with it", async () => {
    await using t = await setup();
    await addImage(t.images, URI, undefined, NO_ABORT);
    t.update();
    expect(await addImage(t.images, URI, undefined, NO_ABORT)).toMatchObject({ names: ["tool-1"] });
  });

  test("that can't be had says whose fault it is", async () => {
    await using t = await setup();
    const cases = [
      ["dial tcp: lookup registry.example: no such host", "image_unreachable", true],
      ["Get https://…: net/http: TLS handshake timeout", "image_unreachable", true],
      ["received unexpected HTTP status 503", "image_unreachable", true],
      ["toomanyrequests: rate limit", "image_unreachable", true],
      ["reading manifest: manifest unknown", "image_not_found", false],
      ["requested access to the resource is denied", "image_not_found", false],
      ["unable to parse reference: invalid reference format", "image_invalid", false],
      ["write layer: no space left on device", "disk_full", true],
    ] as const;
    for (const [words, code, retryable] of cases) {
      t.refuse(`FATAL:   While performing build: conveyor failed to get: ${words}\n`);
      const failed = await failureOf(() => t.content(URI));
      expect({ words, ...failed }).toMatchObject({ words, code, retryable });
      expect(failed.message).toContain(URI);
      expect(failed.message).toContain(words);
    }
    expect([t.present(), t.leftovers()]).toEqual([[], []]);
  });
});

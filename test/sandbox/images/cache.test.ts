import { describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { readJson, writeJson } from "../../../src/sandbox/images/cache-folder.ts";
import { addImage, listImages, removeImage } from "../../../src/sandbox/images/catalogue.ts";
import { fileDigest, fileState } from "../../../src/sandbox/images/file-digest.ts";
import { ImageCache } from "../../../src/sandbox/images/image-cache.ts";
import { Images } from "../../../src/sandbox/images/images.ts";
import { failureOf } from "../../support/failure.ts";
import { waitFor } from "../../support/wait-for.ts";
import { acquireElsewhere } from "./elsewhere.ts";
import { type Bundle, NO_ABORT, setup } from "./setup.ts";

setDefaultTimeout(60_000);

/** Unpacks an image, lets go of it, and says that it was last used `minute` minutes after 2026 began. */
async function usedAt(t: Bundle, name: string, minute: number): Promise<string> {
  const { digest, lock } = await t.images.acquire(await t.sif(name), NO_ABORT);
  lock?.[Symbol.dispose]();
  const time = new Date(Date.UTC(2026, 0, 1, 0, minute));
  utimesSync(join(t.settings.cacheDir, digest ?? "", "used"), time, time);
  return digest ?? "";
}

function sizeOf(t: Bundle, digest: string): number {
  return listImages(t.images.cache).find((view) => view.digest === digest)?.bytes ?? 0;
}

describe("pruning", () => {
  test("removes the least recently used first, down to the limit", async () => {
    await using t = await setup();
    const digests: Record<number, string> = {};
    for (const minute of [4, 2, 5, 1, 3]) digests[minute] = await usedAt(t, `a${minute}`, minute);
    const { digests: pruned, removed } = t.images.cache.prune(sizeOf(t, digests[5] ?? ""));
    await removed;
    expect(pruned).toEqual([1, 2, 3, 4].map((minute) => digests[minute] ?? ""));
    expect([t.present(), t.leftovers()]).toEqual([[digests[5] ?? ""], []]);
  });

  test("happens by itself when an image is unpacked, and spares that one", async () => {
    await using t = await setup({ maxBytes: 700 });
    const first = await usedAt(t, "first", 1);
    expect(t.present()).toEqual([first]);
    const second = await usedAt(t, "second", 2);
    await waitFor(() => t.leftovers().length === 0, "the files to be deleted");
    expect(t.present()).toEqual([second]);
  });

  test("never touches an image in use, until its user is gone, by kill -9 too", async () => {
    await using t = await setup();
    const sif = await t.sif("one");
    await using user = acquireElsewhere(sif, t.settings);
    const { digest, path } = await user.said();
    const { digests } = t.images.cache.prune(0);
    expect([digests, readFileSync(join(path, "etc/content"), "utf8")]).toEqual([[], "one"]);
    expect(listImages(t.images.cache)).toMatchObject([{ digest, in_use: true }]);
    user.child.kill("SIGKILL");
    await user.child.exited;
    expect(t.images.cache.prune(0).digests).toEqual([digest]);
  });

  test("removes what dead processes left", async () => {
    await using t = await setup();
    const { folder } = t.images.cache;
    mkdirSync(join(folder.temporary("a".repeat(64)), "rootfs"), { recursive: true });
    mkdirSync(join(folder.trash, "b"));
    mkdirSync(folder.image("c".repeat(64)));
    const { digests, removed } = t.images.cache.prune(1e12);
    await removed;
    expect([digests, t.leftovers(), t.present()]).toEqual([["c".repeat(64)], [], []]);
  });
});

describe("an image in the cache that is damaged", () => {
  const damages: [string, (folder: string) => void][] = [
    ["has lost a folder", (folder) => rmSync(join(folder, "rootfs/usr"), { recursive: true })],
    ["has lost its record", (folder) => rmSync(join(folder, "image.json"))],
    ["has a torn record", (folder) => truncateSync(join(folder, "image.json"), 20)],
  ];
  for (const [what, damage] of damages) {
    test(`because it ${what} is unpacked again at its next use`, async () => {
      await using t = await setup();
      const sif = await t.sif("one");
      const { digest, lock } = await t.images.acquire(sif, NO_ABORT);
      lock?.[Symbol.dispose]();
      damage(t.images.cache.folder.image(digest ?? ""));
      const again = await t.images.acquire(sif, NO_ABORT);
      using _held = again.lock;
      expect(readFileSync(join(again.path, "usr/lib/7"), "utf8")).toBe("one");
      expect(t.unpacks()).toBe(2);
    });
  }

  test("inside is found at the first use after the node's start, as a power cut leaves it", async () => {
    await using t = await setup();
    const sif = await t.sif("one");
    const first = await t.images.acquire(sif, NO_ABORT);
    first.lock?.[Symbol.dispose]();
    const record = join(t.settings.cacheDir, first.digest ?? "", "image.json");
    const restart = () => {
      const text = readFileSync(record, "utf8");
      writeFileSync(record, text.replace(/"bootId":"[^"]*"/, '"bootId":"another"'));
    };
    restart();
    (await t.images.acquire(sif, NO_ABORT)).lock?.[Symbol.dispose]();
    expect(t.unpacks()).toBe(1);
    restart();
    truncateSync(join(first.path, "usr/lib/7"), 0);
    const again = await t.images.acquire(sif, NO_ABORT);
    using _held = again.lock;
    expect([readFileSync(join(again.path, "usr/lib/7"), "utf8"), t.unpacks()]).toEqual(["one", 2]);
  });

  test("is found by verify, and not used again", async () => {
    await using t = await setup();
    const digest = await usedAt(t, "one", 1);
    expect(await t.images.cache.verify(digest, NO_ABORT)).toBe(true);
    const file = join(t.images.cache.folder.rootfs(digest), "usr/lib/7");
    writeFileSync(file, "two");
    expect(await t.images.cache.verify(digest, NO_ABORT)).toBe(false);
    expect(t.present()).toEqual([]);
  });

  test("is not replaced under a sandbox: who needs it is told to try again", async () => {
    await using t = await setup();
    const sif = await t.sif("one");
    await using user = acquireElsewhere(sif, t.settings);
    const { path } = await user.said();
    rmSync(join(path, "../image.json"));
    const patient = new ImageCache(t.settings.cacheDir, 50);
    const images = new Images(t.settings, patient);
    const failed = await failureOf(() => images.acquire(sif, NO_ABORT));
    expect(failed).toMatchObject({ code: "image_busy", retryable: true });
    expect(readFileSync(join(path, "etc/content"), "utf8")).toBe("one");
  });
});

describe("a file's hash", () => {
  test("is noted, and taken again when the file has changed, whatever its times say", async () => {
    await using t = await setup();
    const { folder } = t.images.cache;
    const path = t.file("file");
    const digest = async (nowMs?: number) =>
      await fileDigest(folder, path, await fileState(path), NO_ABORT, nowMs);
    writeFileSync(path, "one");
    const { dev, ino } = await fileState(path);
    const one = await digest();
    // Too fresh to be trusted.
    expect(readJson(folder.fileDigest(dev, ino))).toBe(null);
    await digest(Date.now() + 10_000);
    const note = readJson<object>(folder.fileDigest(dev, ino));
    expect(note).toMatchObject({ sha256: one });
    writeJson(folder.fileDigest(dev, ino), { ...note, sha256: "noted" });
    expect(await digest()).toBe("noted");
    const { mtime } = statSync(path);
    writeFileSync(path, "two");
    utimesSync(path, mtime, mtime);
    expect(await digest()).toBe(new Bun.CryptoHasher("sha256").update("two").digest("hex"));
  });

  test("of a file that is being written is refused, to be tried again", async () => {
    await using t = await setup();
    writeFileSync(t.file("file"), "one");
    const before = await fileState(t.file("file"));
    appendFileSync(t.file("file"), "more");
    const failed = await failureOf(() =>
      fileDigest(t.images.cache.folder, t.file("file"), before, NO_ABORT),
    );
    expect(failed).toMatchObject({ code: "image_busy", retryable: true });
  });
});

describe("a name", () => {
  test("stands for one content, also after that was pruned and its file is back", async () => {
    await using t = await setup();
    const sif = await t.sif("one");
    const { digest } = await addImage(t.images, sif, "base", NO_ABORT);
    await t.images.cache.prune(0).removed;
    expect(listImages(t.images.cache)).toMatchObject([{ names: ["base"], unpacked: false }]);
    const lease = await t.images.acquire("base", NO_ABORT);
    lease.lock?.[Symbol.dispose]();
    expect(lease.digest).toBe(digest);
    // While it is in the cache nobody needs the file.
    rmSync(sif);
    (await t.images.acquire("base", NO_ABORT)).lock?.[Symbol.dispose]();
    await t.images.cache.prune(0).removed;
    expect((await failureOf(() => t.images.acquire("base", NO_ABORT))).code).toBe(
      "image_not_found",
    );
    writeFileSync(sif, readFileSync(await t.sif("two")));
    const changed = await failureOf(() => t.images.acquire("base", NO_ABORT));
    expect(changed).toMatchObject({ code: "image_invalid", mend: expect.stringContaining("add") });
  });

  test("is made from the reference where none is given, and does not move by itself", async () => {
    await using t = await setup();
    const sif = await t.sif("math");
    expect(await addImage(t.images, sif, undefined, NO_ABORT)).toMatchObject({
      ...{ names: ["math"], origin: sif, unpacked: true, in_use: false, files: 108 },
    });
    mkdirSync(t.file("sub"));
    const other = t.folder("sub/math");
    const taken = await failureOf(() => addImage(t.images, other, undefined, NO_ABORT));
    expect(taken).toMatchObject({ code: "invalid_field", field: "name" });
    const moved = await addImage(t.images, other, "math", NO_ABORT);
    expect(moved).toMatchObject({ names: ["math"], origin: other });
    const wrong = await failureOf(() => addImage(t.images, sif, "a/b", NO_ABORT));
    expect(wrong).toMatchObject({ code: "invalid_field", field: "name" });
  });

  test("can be taken away, and the files go with the last one that nobody uses", async () => {
    await using t = await setup();
    const sif = await t.sif("one");
    await addImage(t.images, sif, "a", NO_ABORT);
    const { digest } = await addImage(t.images, sif, "b", NO_ABORT);
    expect([removeImage(t.images.cache, "a"), t.present()]).toEqual([true, [digest]]);
    const lease = await t.images.acquire("b", NO_ABORT);
    expect([removeImage(t.images.cache, "b"), t.present()]).toEqual([false, [digest]]);
    lease.lock?.[Symbol.dispose]();
    expect((await failureOf(() => removeImage(t.images.cache, "b"))).code).toBe("image_not_found");
  });
});

describe("a folder", () => {
  test("that is added is copied, and has the same address wherever it lies and whoever owns it", async () => {
    await using t = await setup();
    const [one, two] = [t.folder("one", "same"), t.folder("two", "same")];
    chmodSync(join(two, "etc/content"), 0o6644);
    const first = await addImage(t.images, one, undefined, NO_ABORT);
    const second = await addImage(t.images, two, undefined, NO_ABORT);
    expect(second).toMatchObject({ digest: first.digest, names: ["one", "two"] });
    appendFileSync(join(two, "etc/content"), "more");
    const third = await addImage(t.images, two, "third", NO_ABORT);
    expect(third.digest).not.toBe(first.digest);
    const { path, lock } = await t.images.acquire("one", NO_ABORT);
    using _held = lock;
    expect(path.startsWith(t.settings.cacheDir)).toBe(true);
  });
});

test("a cache that others may write to, or that is theirs, is refused", async () => {
  await using t = await setup();
  mkdirSync(t.settings.cacheDir);
  chmodSync(t.settings.cacheDir, 0o777);
  const sif = await t.sif("one");
  const failed = await failureOf(() => t.images.acquire(sif, NO_ABORT));
  expect(failed).toMatchObject({ code: "image_cache_unusable", mend: expect.any(String) });
  expect(failed.message).toContain(t.settings.cacheDir);
});

describe("a full disk", () => {
  /** As a process of a namespace where the cache lies on a small file system. */
  async function onSmallDisk(t: Bundle, kilobytes: number, images: string[]) {
    mkdirSync(t.settings.cacheDir);
    const script = `mount -t tmpfs -o mode=700,size=${kilobytes}k none "$0" && exec "$@"`;
    const program = [process.execPath, join(import.meta.dir, "small-disk.ts")];
    const child = Bun.spawn(
      ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script].concat([
        t.settings.cacheDir,
        ...program,
        JSON.stringify(t.settings),
        ...images,
      ]),
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    const lines = (await child.stdout.text()).trim().split("\n");
    expect(await child.exited).toBe(0);
    return lines.map((line) => JSON.parse(line));
  }

  const large = "x".repeat(20_000);

  test("is an error that names the image and may be tried again, and leaves nothing", async () => {
    await using t = await setup();
    const sif = await t.sif("large", large);
    const tar = t.file("large.tar");
    Bun.spawnSync(["tar", "-cf", tar, "-C", t.file("large.root"), "."]);
    for (const image of [sif, tar]) {
      rmSync(t.settings.cacheDir, { recursive: true, force: true });
      const [failed, left] = await onSmallDisk(t, 1000, [image]);
      expect(failed).toMatchObject({ code: "disk_full", retryable: true });
      expect(failed.message).toContain(image);
      expect(left).toEqual({ present: [], leftovers: [] });
    }
  });

  test("makes room by what nobody uses", async () => {
    await using t = await setup();
    const [one, two] = [await t.sif("one", large), await t.sif("two", large.replace("x", "y"))];
    const [first, second, left] = await onSmallDisk(t, 3500, [one, two]);
    const taken = { digest: expect.stringMatching(/^[0-9a-f]{64}$/) };
    expect([first, second]).toEqual([taken, taken]);
    expect(left).toEqual({ present: [second.digest], leftovers: [] });
  });
});

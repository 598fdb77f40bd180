import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { removeTree } from "../../../src/lib/remove-tree.ts";
import { withinLimit } from "../../../src/sandbox/images/unpack-limit.ts";
import { failureOf } from "../../support/failure.ts";
import { makeSif } from "../../support/sif.ts";
import { makeTar, type TarMember } from "../../support/tar.ts";
import { required } from "../setup.ts";
import { asUnprivilegedUser } from "../unprivileged.ts";
import { dockerArchive, ociArchive } from "./archives.ts";
import { type Bundle, NO_ABORT, setup } from "./setup.ts";

setDefaultTimeout(60_000);

/** Where `makeSif` puts the file system, which begins with 96 bytes of header. */
const SIF_ROOT_AT = 32_768;

const ROOTFS: TarMember[] = [
  { name: "usr/", type: "5" },
  { name: "usr/bin/", type: "5" },
  { name: "usr/bin/tool", content: "#!/bin/sh\n", mode: 0o4755 },
  { name: "bin", type: "2", link: "usr/bin" },
];

function sha256(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

/** Acquires, looks at the files, and lets go. */
async function contentOf<T>(t: Bundle, image: string, look: (path: string) => T): Promise<T> {
  const { path, lock } = await t.images.acquire(image, NO_ABORT);
  using _held = lock;
  return look(path);
}

function tarOf(t: Bundle, name: string, members: TarMember[]): string {
  writeFileSync(t.file(name), makeTar(members));
  return t.file(name);
}

async function failure(t: Bundle, image: string) {
  const failed = await failureOf(() => t.images.acquire(image, NO_ABORT));
  expect(failed.message).toContain(image);
  expect([t.present(), t.leftovers()]).toEqual([[], []]);
  return failed;
}

describe("an image", () => {
  test("of a SIF has the file's hash as its address, and its files are ours and gain no rights", async () => {
    await using t = await setup();
    const sif = await t.sif("math");
    const lease = await t.images.acquire(sif, NO_ABORT);
    using _held = lease.lock;
    expect(lease.digest).toBe(sha256(sif));
    expect(lease.path).toBe(join(t.settings.cacheDir, sha256(sif), "rootfs"));
    const tool = lstatSync(join(lease.path, "usr/bin/tool"));
    expect([tool.uid, tool.mode & 0o7777]).toEqual([process.geteuid?.() ?? -1, 0o755]);
    using again = (await t.images.acquire(sif, NO_ABORT)).lock;
    expect([t.unpacks(), again?.path]).toEqual([1, lease.lock?.path]);
  });

  test("of a tar is unpacked whatever its compression", async () => {
    await using t = await setup();
    const tar = tarOf(t, "plain.tar", ROOTFS);
    for (const [program, ending] of [
      ["gzip", "gz"],
      ["zstd", "zst"],
      ["xz", "xz"],
    ] as const) {
      const packed = t.file(`packed.tar.${ending}`);
      writeFileSync(packed, Bun.spawnSync([program, "-c", tar]).stdout);
      expect(await contentOf(t, packed, (path) => readlinkSync(join(path, "bin")))).toBe("usr/bin");
    }
    const tool = await contentOf(t, tar, (path) => lstatSync(join(path, "bin/tool")));
    expect([tool.uid, tool.mode & 0o7777]).toEqual([process.geteuid?.() ?? -1, 0o755]);
  });

  test("of a docker or OCI archive is unpacked with its layers applied", async () => {
    await using t = await setup();
    const layers = [
      makeTar([...ROOTFS, { name: "gone", content: "below" }]),
      makeTar([{ name: ".wh.gone" }, { name: "usr/bin/new", content: "above" }]),
    ];
    writeFileSync(t.file("docker.tar"), dockerArchive(layers));
    writeFileSync(t.file("oci.tar"), ociArchive(layers));
    for (const kind of ["docker", "oci"]) {
      const image = `${kind}-archive:${t.file(`${kind}.tar`)}`;
      const look = (path: string) => [
        readFileSync(join(path, "usr/bin/new"), "utf8"),
        existsSync(join(path, "gone")),
      ];
      expect(await contentOf(t, image, look)).toEqual(["above", false]);
    }
  });

  test("that is a folder is used in place, and needs no cache", async () => {
    await using t = await setup();
    const folder = t.folder("rootfs");
    expect(await t.images.acquire(folder, NO_ABORT)).toEqual({
      ...{ path: folder, digest: null, lock: null },
    });
    expect(existsSync(t.settings.cacheDir)).toBe(false);
  });

  test("in a SIF above image_mount_bytes is its file", async () => {
    await using t = await setup({ mountAboveBytes: 1000 });
    const sif = await t.sif("large");
    expect(await t.images.acquire(sif, NO_ABORT)).toEqual({ path: sif, digest: null, lock: null });
  });

  test("keeps names that are no UTF-8, files that nobody may read, and loses devices", async () => {
    await using t = await setup();
    const root = t.folder("odd");
    writeFileSync(Buffer.concat([Buffer.from(`${root}/etc/`), Buffer.from([0xff, 0xfe])]), "odd");
    writeFileSync(join(root, "etc/shadow"), "secret");
    mkdirSync(join(root, "closed"));
    const sif = t.file("odd.sif");
    const odd = [
      ...["etc/null c 666 0 0 1 3", "etc/pipe i 600 0 0 f"],
      ...["etc/shadow m 0 0 0", "closed m 0 0 0"],
    ];
    await makeSif(
      required("ROLLOUTD_APPTAINER"),
      root,
      sif,
      odd.flatMap((line) => ["-p", line]),
    );
    const names = await contentOf(t, sif, (path) => [
      readFileSync(join(path, "etc/shadow"), "utf8"),
      ...readdirSync(join(path, "etc"), { encoding: "buffer" }).map((name) => name.toString("hex")),
    ]);
    const hex = (name: string) => Buffer.from(name).toString("hex");
    expect(names.sort()).toEqual(["secret", hex("content"), hex("shadow"), "fffe"].sort());
  });
});

describe("what can't be an image is named, and leaves nothing:", () => {
  test("a file that is not there", async () => {
    await using t = await setup();
    for (const image of [t.file("missing"), `docker-archive:${t.file("missing")}`]) {
      expect((await failureOf(() => t.images.acquire(image, NO_ABORT))).code).toBe(
        "image_not_found",
      );
    }
    const unnamed = await failureOf(() => t.images.acquire("nobody", NO_ABORT));
    expect([unnamed.code, unnamed.message]).toEqual([
      ...["image_not_found", "there is no image named nobody"],
    ]);
  });

  test("a SIF that is cut off, damaged inside, or garbage", async () => {
    await using t = await setup();
    const sif = await t.sif("whole");
    const bytes = readFileSync(sif);
    const cut = t.file("cut.sif");
    writeFileSync(cut, bytes);
    truncateSync(cut, bytes.length - 2000);
    const damaged = t.file("damaged.sif");
    writeFileSync(damaged, Buffer.from(bytes).fill(0x55, SIF_ROOT_AT + 96, SIF_ROOT_AT + 400));
    const header = t.file("header.sif");
    writeFileSync(header, Buffer.from(bytes).fill(0xff, 64, 512));
    const garbage = t.file("garbage.sif");
    writeFileSync(garbage, "no image at all");
    for (const image of [cut, damaged, header, garbage]) {
      expect(await failure(t, image)).toMatchObject({ code: "image_invalid", retryable: false });
    }
  });

  test("a SIF whose partition lies elsewhere, has no size, or is of another kind", async () => {
    await using t = await setup();
    const bytes = readFileSync(await t.sif("whole"));
    const descriptor = Number(bytes.readBigInt64LE(96));
    const [offset, size, fileSystem] = [descriptor + 17, descriptor + 25, descriptor + 585 - 384];
    const changes: [string, (sif: Buffer) => void][] = [
      ...[-5n, 0n, 96n, -(10n ** 18n), 2n ** 62n].map((value): [string, (sif: Buffer) => void] => [
        `offset-${value}`,
        (sif) => sif.writeBigInt64LE(value, offset),
      ]),
      ...[0n, -1n, 2n ** 62n].map((value): [string, (sif: Buffer) => void] => [
        `size-${value}`,
        (sif) => sif.writeBigInt64LE(value, size),
      ]),
      ["ext3", (sif) => sif.writeInt32LE(2, fileSystem)],
      ["encrypted", (sif) => sif.writeInt32LE(4, fileSystem)],
    ];
    for (const [name, change] of changes) {
      const changed = Buffer.from(bytes);
      change(changed);
      writeFileSync(t.file(`${name}.sif`), changed);
      expect(await failure(t, t.file(`${name}.sif`))).toMatchObject({
        code: "image_invalid",
        message: expect.stringMatching(
          /header is damaged|is cut off|file system is no SquashFS|can't be unpacked/,
        ),
      });
    }
  });

  test("an image that is a few kilobytes, and more than the cache unpacked", async () => {
    await using t = await setup({ maxBytes: 5_000_000 });
    const root = t.folder("bomb");
    writeFileSync(join(root, "usr/bomb"), "x".repeat(6_000_000));
    const sif = t.file("bomb.sif");
    await makeSif(required("ROLLOUTD_APPTAINER"), root, sif);
    const tar = t.file("bomb.tgz");
    expect(Bun.spawnSync(["tar", "-czf", tar, "-C", root, "."]).exitCode).toBe(0);
    for (const image of [sif, tar]) {
      expect(await failure(t, image)).toMatchObject({
        ...{ code: "image_invalid", retryable: false },
        message: expect.stringContaining("larger unpacked than image_cache_bytes"),
      });
    }
    // Holes take nothing.
    writeFileSync(join(root, "usr/bomb"), "");
    truncateSync(join(root, "usr/bomb"), 2 ** 40);
    await makeSif(required("ROLLOUTD_APPTAINER"), root, t.file("sparse.sif"));
    const size = (path: string) => lstatSync(join(path, "usr/bomb")).size;
    expect(await contentOf(t, t.file("sparse.sif"), size)).toBe(2 ** 40);
    expect(t.images.cache.list()[0]?.record.inventory.bytes).toBeLessThan(100_000);
  });

  test("an image without an end is given up while it is unpacked", async () => {
    const folder = mkdtempSync(join(tmpdir(), "endless-"));
    const limit = { image: "endless", folder, maxBytes: 1_000_000, signal: NO_ABORT };
    const endless = withinLimit(limit, async (signal) => {
      for (let i = 0; !signal.aborted; i++) {
        writeFileSync(join(folder, `${i}`), Buffer.alloc(5_000_000));
        await Bun.sleep(1);
        if (i === 200) return;
      }
      throw signal.reason;
    });
    const failed = await failureOf(() => endless);
    await removeTree(folder);
    expect(failed).toMatchObject({ code: "image_invalid" });
  });

  test("a tar that is cut off, or holds no root file system", async () => {
    await using t = await setup();
    const long = tarOf(t, "long.tar", [...ROOTFS, { name: "usr/long", content: "x".repeat(9999) }]);
    truncateSync(long, 8000);
    const packed = t.file("packed.tgz");
    const gzip = gzipSync(makeTar([...ROOTFS, { name: "usr/x", content: "x".repeat(9999) }]));
    writeFileSync(packed, gzip.subarray(0, gzip.length - 40));
    const empty = tarOf(t, "other.tar", [{ name: "manifest.json", content: "[]" }]);
    for (const image of [long, packed, empty]) {
      expect(await failure(t, image)).toMatchObject({ code: "image_invalid", retryable: false });
    }
  });

  test("a folder given to add that holds no root file system", async () => {
    await using t = await setup();
    mkdirSync(t.file("empty"));
    const reference = { kind: "path", path: t.file("empty") } as const;
    const failed = await failureOf(() => t.images.add(t.file("empty"), reference, NO_ABORT));
    expect([failed.code, t.present(), t.leftovers()]).toEqual(["image_invalid", [], []]);
  });

  test("a registry that can't be reached, which may be tried again", async () => {
    await using t = await setup();
    for (const image of ["docker://127.0.0.1:1/none:latest", "docker://registry.invalid/none:1"]) {
      expect(await failure(t, image)).toMatchObject({
        ...{ code: "image_unreachable", boundary: "sandbox", retryable: true },
      });
    }
  });
});

describe("a hostile tar writes nothing outside its folder:", () => {
  const escapes: [string, TarMember[]][] = [
    ["a name with ..", [{ name: "../../../../escaped", content: "x" }]],
    ["an absolute name", [{ name: "DIR/escaped", content: "x" }]],
    [
      "a link to a folder outside, and a file through it",
      [
        { name: "usr/out", type: "2", link: "DIR" },
        { name: "usr/out/escaped", content: "x" },
      ],
    ],
    [
      "a link upwards, and a file through it",
      [
        { name: "usr/up", type: "2", link: "../../../../.." },
        { name: "usr/up/escaped", content: "x" },
      ],
    ],
    ["a hard link to a file outside", [{ name: "usr/hard", type: "1", link: "DIR/victim" }]],
  ];
  for (const [what, members] of escapes) {
    test(what, async () => {
      await using t = await setup();
      const here = dirname(t.file("victim"));
      writeFileSync(t.file("victim"), "kept");
      const placed = members.map((member) => ({
        ...member,
        name: member.name.replace("DIR", here),
        link: member.link?.replace("DIR", here) ?? "",
      }));
      const tar = tarOf(t, "hostile.tar", [...ROOTFS, ...placed]);
      const outside = () => readdirSync(here).filter((name) => name !== "cache");
      const before = outside().sort();
      // Refused, or taken as if the folder were the root of all names.
      const { path, lock } = await t.images.acquire(tar, NO_ABORT).catch((error) => {
        expect(error).toMatchObject({ code: "image_invalid" });
        return { path: null, lock: null };
      });
      using _held = lock;
      expect(outside().sort()).toEqual(before);
      expect(readdirSync(t.settings.cacheDir)).not.toContain("escaped");
      expect(lstatSync(t.file("victim")).nlink).toBe(1);
      if (path !== null) expect(existsSync(join(path, here, "escaped"))).toBe(true);
    });
  }

  test("a device is left out", async () => {
    await using t = await setup();
    const tar = tarOf(t, "device.tar", [...ROOTFS, { name: "usr/null", type: "3" }]);
    expect(await contentOf(t, tar, (path) => readdirSync(join(path, "usr")))).toEqual(["bin"]);
  });
});

if (process.getuid?.() === 0) {
  test("an unprivileged user's images pass the same tests", async () => {
    const { exitCode, output } = await asUnprivilegedUser("test/sandbox/images");
    expect({ exitCode, output: exitCode === 0 ? "" : output }).toEqual({ exitCode: 0, output: "" });
  }, 300_000);
}

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { failureOf } from "../../support/failure.ts";
import { waitFor } from "../../support/wait-for.ts";
import { acquireElsewhere } from "./elsewhere.ts";
import { NO_ABORT, setup } from "./setup.ts";

setDefaultTimeout(60_000);

describe("processes that want one image at once", () => {
  test("unpack it once, and all get it", async () => {
    await using t = await setup();
    const sif = await t.sif("one");
    const others = Array.from({ length: 8 }, () => acquireElsewhere(sif, t.settings));
    const said = await Promise.all(others.map((other) => other.said()));
    const lease = await t.images.acquire(sif, NO_ABORT);
    using _held = lease.lock;
    const { path, digest } = lease;
    expect(said).toEqual(Array(8).fill({ path, digest }));
    expect([t.unpacks(), t.leftovers()]).toEqual([1, []]);
    await Promise.all(others.map((other) => other[Symbol.asyncDispose]()));
  });

  test("leave after kill -9 at any point only what the next one clears away", async () => {
    await using t = await setup();
    const sif = await t.sif("one");
    const temporaries = join(t.settings.cacheDir, ".tmp");
    const entries = () => {
      const [name] = existsSync(temporaries) ? readdirSync(temporaries) : [];
      const libraries = join(temporaries, name ?? "-", "rootfs/usr/lib");
      return (name ? 1 : 0) + (existsSync(libraries) ? readdirSync(libraries).length : 0);
    };
    for (const point of [0, 1, 2, 50, 101]) {
      await using victim = acquireElsewhere(sif, t.settings);
      let ended = false;
      victim.said().then(() => (ended = true));
      await waitFor(() => ended || entries() >= point, `${point} entries`);
      victim.child.kill("SIGKILL");
      await victim.child.exited;
      const lease = await t.images.acquire(sif, NO_ABORT);
      expect(readdirSync(temporaries)).toEqual([]);
      expect(readdirSync(join(lease.path, "usr/lib"))).toHaveLength(100);
      expect(await t.images.cache.verify(lease.digest ?? "", NO_ABORT)).toBe(true);
      lease.lock?.[Symbol.dispose]();
      const { removed, digests } = t.images.cache.prune(0);
      await removed;
      expect([digests, t.leftovers(), t.present()]).toEqual([[lease.digest ?? ""], [], []]);
    }
  });

  test("are not held up for long by one that was killed while it unpacked", async () => {
    await using t = await setup();
    const sif = await t.sif("one");
    const release = t.hold();
    await using victim = acquireElsewhere(sif, t.settings);
    const unpacker = await waitFor(() => t.unpackers()[0], "the other to unpack");
    // It holds the lock too, so that nobody takes over while it writes, and ends with its parent.
    const held = readlinkSync(`/proc/${unpacker}/fd/3`);
    expect(held.startsWith(join(t.settings.cacheDir, ".locks"))).toBe(true);
    victim.child.kill("SIGKILL");
    const next = t.images.acquire(sif, NO_ABORT);
    await waitFor(() => t.unpacks() === 2, "this one to unpack");
    release();
    using _held = (await next).lock;
    expect(t.leftovers().filter((name) => !t.present().includes(name.slice(0, 64)))).toEqual([]);
  });
});

describe("jobs of one process that want one image at once", () => {
  test("share one unpacking, which goes on when one of them is cancelled", async () => {
    await using t = await setup();
    const sif = await t.sif("one");
    const release = t.hold();
    const first = new AbortController();
    const cancelled = failureOf(() => t.images.acquire(sif, first.signal)).catch((why) => why);
    const others = Array.from({ length: 20 }, () => t.images.acquire(sif, NO_ABORT));
    await waitFor(() => t.unpacks() === 1, "it to be unpacked");
    first.abort("cancelled");
    expect(await cancelled).toBe("cancelled");
    release();
    const leases = await Promise.all(others);
    expect(new Set(leases.map(({ path }) => path)).size).toBe(1);
    expect(t.unpacks()).toBe(1);
    for (const { lock } of leases) lock?.[Symbol.dispose]();
  });

  test("stop it when all of them are cancelled, and leave nothing", async () => {
    await using t = await setup();
    const sif = await t.sif("one");
    const release = t.hold();
    const controller = new AbortController();
    const jobs = Array.from({ length: 3 }, () =>
      t.images.acquire(sif, controller.signal).catch((why) => why),
    );
    await waitFor(() => t.unpacks() === 1, "it to be unpacked");
    controller.abort("cancelled");
    expect(await Promise.all(jobs)).toEqual(["cancelled", "cancelled", "cancelled"]);
    await waitFor(() => t.leftovers().length === 0, "its folder to be gone");
    expect(t.present()).toEqual([]);
    release();
  });

  test("do not hold up jobs of another image", async () => {
    await using t = await setup();
    const [slow, quick] = [await t.sif("slow"), await t.sif("quick")];
    using _ready = (await t.images.acquire(quick, NO_ABORT)).lock;
    const release = t.hold();
    const waiting = t.images.acquire(slow, NO_ABORT);
    await waitFor(() => t.unpacks() === 2, "the slow one to be unpacked");
    using _also = (await t.images.acquire(quick, NO_ABORT)).lock;
    using _folder = (await t.images.acquire(t.folder("in-place"), NO_ABORT)).lock;
    release();
    using _slow = (await waiting).lock;
  });

  test("a cancel ends the wait for another process", async () => {
    await using t = await setup();
    const sif = await t.sif("one");
    const release = t.hold();
    await using _other = acquireElsewhere(sif, t.settings);
    await waitFor(() => t.unpacks() === 1, "the other to unpack");
    const controller = new AbortController();
    const waiting = t.images.acquire(sif, controller.signal).catch((why) => why);
    controller.abort("cancelled");
    expect(await waiting).toBe("cancelled");
    release();
  });
});

import { expect, test } from "bun:test";
import { existsSync, symlinkSync } from "node:fs";
import { FileLock } from "../../src/lib/file-lock.ts";
import { tempDir } from "../support/temp-dir.ts";

test("many share a lock, or one has it alone", () => {
  using dir = tempDir();
  using first = new FileLock(dir.file("lock"));
  using second = new FileLock(dir.file("lock"));
  expect([first.tryShared(), second.tryShared()]).toEqual([true, true]);
  expect(first.tryExclusive()).toBe(false);
  second.unlock();
  expect([first.tryExclusive(), second.tryShared()]).toEqual([true, false]);
  first.unlock();
  expect(second.tryShared()).toBe(true);
});

test("a link or a fifo in a lock's place is an error, makes no file, and keeps nobody waiting", async () => {
  using dir = tempDir();
  symlinkSync(dir.file("elsewhere"), dir.file("link"));
  expect(await Bun.spawn(["mkfifo", dir.file("fifo")]).exited).toBe(0);
  expect(() => new FileLock(dir.file("link"))).toThrow("ELOOP");
  expect(existsSync(dir.file("elsewhere"))).toBe(false);
  expect(() => new FileLock(dir.file("fifo"))).toThrow("ENXIO");
});

test("a lock ends with its process, and no child inherits it", async () => {
  using dir = tempDir();
  const program = `
    import { FileLock } from ${JSON.stringify(import.meta.resolve("../../src/lib/file-lock.ts"))};
    const lock = new FileLock(${JSON.stringify(dir.file("lock"))});
    if (!lock.tryExclusive()) throw new Error("it is held");
    const child = Bun.spawn(["sleep", "1000"], { detached: true, stdio: ["ignore", "ignore", "ignore"] });
    console.log(child.pid);
    await Bun.stdin.text();`;
  const holder = Bun.spawn([process.execPath, "-e", program], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const { value } = await holder.stdout.getReader().read();
  using lock = new FileLock(dir.file("lock"));
  expect(lock.tryShared()).toBe(false);
  holder.kill("SIGKILL");
  await holder.exited;
  expect(lock.tryExclusive()).toBe(true);
  process.kill(Number(Buffer.from(value ?? []).toString()), "SIGKILL");
});

import { expect, test } from "bun:test";
import type { Setup } from "../conformance.ts";
import { EXEC, failure } from "../setup.ts";

export function fileTests(setup: Setup): void {
  test("a file comes back as it was written, in new folders, with its mode", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const data = new Uint8Array(3_000_000).map((_, i) => i * 7);
    await sandbox.writeFile("new/folder/data.bin", data, 0o750);
    expect(Buffer.from(await sandbox.readFile("new/folder/data.bin", 3_000_000))).toEqual(
      Buffer.from(data),
    );
    const { stdout } = await sandbox.exec(["stat", "-c", "%a %s", "new/folder/data.bin"], EXEC);
    expect(stdout).toBe("750 3000000\n");
    await sandbox.writeFile("new/folder/data.bin", "short");
    expect(Buffer.from(await sandbox.readFile("new/folder/data.bin", 5)).toString()).toBe("short");
  });

  test("what is no regular file, or too large, or not there, is refused by name", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    await sandbox.exec(["sh", "-c", "mkfifo fifo; mkdir folder; echo 123456 >large"], EXEC);
    const reads = ["fifo", "folder", "large", "missing", "/dev/zero", "large/x"];
    const codes = await Promise.all(
      reads.map(async (path) => (await failure(sandbox.readFile(path, 5))).code),
    );
    expect(codes).toEqual(["EINVAL", "EISDIR", "EFBIG", "ENOENT", "EINVAL", "ENOTDIR"]);
    expect(await failure(sandbox.writeFile("folder", "x"))).toMatchObject({
      name: "FileError",
      code: "EISDIR",
      path: "folder",
    });
    expect(await failure(sandbox.writeFile("fifo", "x"))).toMatchObject({ code: "ENXIO" });
  });

  test("an abort ends the wait for a file", async () => {
    await using bundle = await setup();
    const sandbox = await bundle.open();
    const abort = new AbortController();
    const writing = sandbox.writeFile("large", Buffer.alloc(50_000_000), 0o644, abort.signal);
    abort.abort(new Error("cancelled"));
    expect((await failure(writing)).message).toBe("cancelled");
  });
}

import { describe, expect, test } from "bun:test";
import { mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../../../src/errors.ts";
import { hubFolder } from "../../../src/inference/tokens/hub-folder.ts";
import { tempDir } from "../../support/temp-dir.ts";

describe("the folder of a model", () => {
  test("is where its path says, or the snapshot that the hub's cache has", async () => {
    using dir = tempDir();
    const snapshot = join(realpathSync(dir.path), "hub/models--Qwen--Qwen3-8B/snapshots/abc");
    mkdirSync(snapshot, { recursive: true });
    await Bun.write(dir.file("hub/models--Qwen--Qwen3-8B/refs/main"), "abc\n");
    expect(hubFolder(snapshot, {})).toBe(snapshot);
    const spelled = `${snapshot}/../../snapshots//abc/.`;
    expect(hubFolder(spelled, {})).toBe(snapshot);
    expect(hubFolder("Qwen/Qwen3-8B", { HF_HOME: dir.path })).toBe(snapshot);
    expect(hubFolder("Qwen/Qwen3-8B", { HF_HUB_CACHE: dir.file("hub") })).toBe(snapshot);
  });

  test("is refused where it is not, and where its name is a way elsewhere", () => {
    using dir = tempDir();
    for (const name of ["Qwen/Qwen3-8B", dir.file("none"), "../../etc", "a/b/c", "..", ""]) {
      expect(() => hubFolder(name, { HF_HOME: dir.path })).toThrow(ServiceError);
    }
  });
});

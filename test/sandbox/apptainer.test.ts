import { describe, expect, test } from "bun:test";
import { chmod, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { conformance } from "./conformance.ts";
import { escapeTests } from "./escape.ts";
import { everydayTests } from "./everyday.ts";
import { isolationTests } from "./isolation.ts";
import { levelTests } from "./levels.ts";
import { failure, LIMITS, NO_ABORT, setup } from "./setup.ts";
import { asUnprivilegedUser } from "./unprivileged.ts";

conformance("apptainer");
describe("apptainer: isolation", () => isolationTests(() => setup("apptainer")));
describe("apptainer: escapes", () => escapeTests("apptainer"));
describe("apptainer: everyday programs", () => everydayTests(() => setup("apptainer")));
describe("apptainer: levels", () => levelTests("apptainer"));

describe("apptainer: failures", () => {
  test("an image that is not there, no folder, or no root file system is named", async () => {
    await using bundle = await setup("apptainer");
    const empty = join(bundle.dataDir, "empty");
    const file = join(bundle.dataDir, "file.sif");
    await mkdir(empty);
    await writeFile(file, "not an image");
    const cases = [
      [join(bundle.dataDir, "missing"), "image_not_found"],
      [file, "image_invalid"],
      [empty, "image_invalid"],
    ] as const;
    for (const [image, code] of cases) {
      const error = await failure(bundle.driver.start(bundle.spec({ image }), NO_ABORT));
      expect(error).toMatchObject({ code });
      expect(error.message).toContain(image);
    }
  });

  test("a program that is missing, or another one, is named with what to do", async () => {
    for (const apptainer of ["/no/such/apptainer", "/bin/false"]) {
      await using bundle = await setup("apptainer", { apptainer });
      const error = await failure(bundle.driver.start(bundle.spec(), NO_ABORT));
      expect(error).toMatchObject({ code: "sandbox_unavailable", mend: expect.any(String) });
      expect(error.message).toContain(apptainer);
    }
  });

  test("a start that takes too long fails as such and leaves nothing", async () => {
    await using bundle = await setup("apptainer");
    const slow = bundle.spec({ limits: { ...LIMITS, startTimeoutMs: 1 } });
    const error = await failure(bundle.driver.start(slow, NO_ABORT));
    expect(error).toMatchObject({ code: "sandbox_start_failed" });
    expect(error.message).toContain("did not answer within 1 ms");
    expect(await readdir(join(bundle.dataDir, "sandboxes"))).toEqual([".trash"]);
  });

  test("a start that fails says what the program said and leaves nothing", async () => {
    await using bundle = await setup("apptainer");
    const fake = join(bundle.dataDir, "fake");
    const script = `[ "$1" = buildcfg ] && echo APPTAINER_SUID_INSTALL=0 && exit
sleep 100 & echo "no luck today" >&2; exit 9`;
    await writeFile(fake, `#!/bin/sh\n${script}\n`);
    await chmod(fake, 0o755);
    await using faked = await setup("apptainer", { apptainer: fake });
    const error = await failure(faked.driver.start(faked.spec(), NO_ABORT));
    expect(error).toMatchObject({ code: "sandbox_start_failed" });
    expect(error.message).toContain("it ended with 9: no luck today");
    expect(await readdir(join(faked.dataDir, "sandboxes"))).toEqual([".trash"]);
  });
});

if (process.getuid?.() === 0) {
  test("an unprivileged user's sandboxes pass the same tests", async () => {
    const { exitCode, output } = await asUnprivilegedUser("test/sandbox/apptainer.test.ts");
    expect({ exitCode, output: exitCode === 0 ? "" : output }).toEqual({ exitCode: 0, output: "" });
  }, 300_000);
}

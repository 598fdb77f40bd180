import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findProgram } from "../../src/sandbox/programs.ts";
import { whyNoSifMount } from "../../src/sandbox/sif-mount.ts";
import { failureOf } from "../support/failure.ts";
import { tempDir } from "../support/temp-dir.ts";
import { brokenPrograms } from "./broken-programs.ts";
import { failure, NO_ABORT, required, setup } from "./setup.ts";

const REFUSED = { code: "sandbox_unavailable", mend: expect.any(String) };

describe.each(["apptainer", "bubblewrap"] as const)("a start by %s", (driver) => {
  test("with a program that can't be run is refused with its path, the reason and what to do", async () => {
    using dir = tempDir();
    for (const [what, path, said] of brokenPrograms(dir.path)) {
      await using bundle = await setup(driver, { apptainer: path, bwrap: path });
      const error = await failure(bundle.driver.start(bundle.spec(), NO_ABORT));
      expect({ what, error }).toMatchObject({ what, error: REFUSED });
      expect(error.message).toContain(path);
      expect(error.message).toMatch(said);
    }
  });
});

test("an Apptainer whose own starter can't be run is refused in the same way", async () => {
  using dir = tempDir();
  for (const [what, path, said] of brokenPrograms(dir.path)) {
    if (what === "one that dies") continue;
    const libexec = dir.file(`libexec ${what}`);
    mkdirSync(join(libexec, "apptainer/bin"), { recursive: true });
    symlinkSync(path, join(libexec, "apptainer/bin/starter"));
    const apptainer = dir.file(`apptainer ${what}`);
    writeFileSync(
      apptainer,
      `#!/bin/sh\necho APPTAINER_SUID_INSTALL=0\necho 'LIBEXECDIR=${libexec}'\n`,
    );
    chmodSync(apptainer, 0o755);
    await using bundle = await setup("apptainer", { apptainer });
    const error = await failure(bundle.driver.start(bundle.spec(), NO_ABORT));
    expect({ what, error }).toMatchObject({ what, error: REFUSED });
    expect(error.message).toMatch(said);
  }
});

test("a squashfuse that can't be run is why no SIF can be mounted", () => {
  using dir = tempDir();
  for (const [what, path, said] of brokenPrograms(dir.path)) {
    if (["one that dies", "a link to nothing", "missing"].includes(what)) continue;
    const bin = dir.file(`bin ${what}`);
    mkdirSync(bin);
    symlinkSync(required("ROLLOUTD_APPTAINER"), join(bin, "apptainer"));
    symlinkSync(path, join(bin, "squashfuse_ll"));
    const usable = Bun.which("squashfuse_ll") !== null;
    if (!usable) expect(whyNoSifMount(join(bin, "apptainer"))).toMatch(said);
  }
});

test("a program on PATH that may not be executed is named, not called missing", async () => {
  using dir = tempDir();
  writeFileSync(dir.file("some-program"), "#!/bin/sh\n", { mode: 0o644 });
  const path = process.env.PATH;
  process.env.PATH = `${dir.path}:${dirname(process.execPath)}`;
  try {
    const asked = () => findProgram({ name: "some-program", mend: "Mend it." });
    const { code, message } = await failureOf(asked);
    expect([code, message]).toEqual([
      "sandbox_unavailable",
      `the program ${dir.file("some-program")} may not be executed by this user (chmod +x it, and mount its disk without noexec)`,
    ]);
  } finally {
    process.env.PATH = path;
  }
});

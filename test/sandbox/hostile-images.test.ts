import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { removeTree } from "../../src/lib/remove-tree.ts";
import type { DriverName } from "../../src/sandbox/sandbox.ts";
import { tempDir } from "../support/temp-dir.ts";
import { EXEC, LIMITS, setup } from "./setup.ts";
import { asUnprivilegedUser } from "./unprivileged.ts";

setDefaultTimeout(60_000);

const DRIVERS: DriverName[] = ["apptainer", "bubblewrap"];
const PROGRAMS = ["bash", "cat", "env", "find", "grep", "ls", "mkdir", "touch"];
const HOST = tempDir();
const CANARY = "canary-of-the-host";

beforeAll(() => writeFileSync(HOST.file(CANARY), CANARY));
afterAll(() => HOST[Symbol.dispose]());

/** A root file system with a few of the host's programs. */
async function smallImage(name: string): Promise<string> {
  const image = HOST.file(name);
  await mkdir(join(image, "usr/bin"), { recursive: true });
  await symlink("usr/bin", join(image, "bin"));
  const script = `set -e; for name in ${PROGRAMS.join(" ")}; do program=$(readlink -f $(command -v $name))
cp $program ${image}/usr/bin/$name
ldd $program | grep -o '/[^ ]*' | while read -r library; do cp -L --parents $library ${image}/; done; done`;
  expect(await Bun.spawn(["bash", "-c", script]).exited).toBe(0);
  return image;
}

/** What an image brings in place of what it should, relative to its root. */
const LAYOUTS: [string, (image: string) => Promise<unknown>][] = [];
for (const place of ["tmp", "var/tmp", "dev", "proc", "run", "run/io"]) {
  const within = (image: string) => mkdir(join(image, place, ".."), { recursive: true });
  const links = [HOST.path, `/oldroot${HOST.path}`, place.split("/").at(-1) ?? ""];
  for (const target of links) {
    const name = target.replace(HOST.path, "HOST");
    const link = (image: string) => within(image).then(() => symlink(target, join(image, place)));
    LAYOUTS.push([`/${place} as a link to ${name}`, link]);
  }
  const file = (image: string) => within(image).then(() => writeFile(join(image, place), "file"));
  LAYOUTS.push([`/${place} as a file`, file]);
}

describe.each(DRIVERS)("%s:", (driver) => {
  test("an image's own scripts are not run before the sandbox is confined, nor later", async () => {
    const image = await smallImage(`hooks-${driver}`);
    const script = "#!/bin/bash\n/bin/touch /tmp/ran\nexport HOOKED=1\n";
    await mkdir(join(image, ".singularity.d/env"), { recursive: true });
    await mkdir(join(image, ".singularity.d/actions"));
    await mkdir(join(image, "scif/apps/x/scif/env"), { recursive: true });
    for (const path of [
      ...[
        "01-base",
        "10-docker2singularity",
        "90-environment",
        "94-appsbase",
        "99-runtimevars",
        "x",
      ].map((name) => `.singularity.d/env/${name}.sh`),
      ...["exec", "run", "start", "shell"].map((name) => `.singularity.d/actions/${name}`),
      ...[".singularity.d/runscript", ".singularity.d/startscript", "environment", "singularity"],
      ...[".exec", ".run", ".shell", ".env", "scif/apps/x/scif/env/90-environment.sh"],
    ]) {
      await writeFile(join(image, path), script, { mode: 0o755 });
    }
    await using bundle = await setup(driver, {}, image);
    for (const writable of ["tmpfs", "overlay"] as const) {
      const sandbox = await bundle.open({ writable });
      const asked = "cat /tmp/ran; env | grep HOOKED; ls -A /tmp";
      const { stdout } = await sandbox.exec(["bash", "-c", asked], EXEC);
      expect(stdout).toBe("home\n");
      expect(readFileSync(`/proc/${sandbox.handle.holderPid}/status`, "utf8")).toContain(
        "Seccomp:\t2",
      );
    }
    await removeTree(join(image, ".singularity.d"));
    const sandbox = await bundle.open();
    expect((await sandbox.exec(["bash", "-c", "ls -A /tmp"], EXEC)).stdout).toBe("home\n");
  });

  test("whatever lies where the sandbox's own folders go, nothing of the host is shown or changed", async () => {
    const image = await smallImage(`layout-${driver}`);
    const base = readdirSync(image);
    await using bundle = await setup(driver, {}, image);
    const before = readdirSync(HOST.path).sort();
    const failures: string[] = [];
    for (const [name, lay] of LAYOUTS) {
      await lay(image);
      try {
        const started = await bundle.open({ limits: { ...LIMITS, startTimeoutMs: 20_000 } });
        const look = `for d in /tmp /var/tmp /dev /run /proc /; do find -L $d -maxdepth 2 -name ${CANARY} 2>/dev/null; done
for d in /tmp /var/tmp /run /run/io; do echo x >$d/${CANARY}.new; done 2>/dev/null; echo looked`;
        const { stdout } = await started.exec(["bash", "-c", look], EXEC);
        if (!/^(\/\S*\n)*looked\n$/.test(stdout)) failures.push(`${name}: ${stdout}`);
        if (stdout.includes(`/${CANARY}\n`)) failures.push(`${name}: ${stdout}`);
      } catch (error) {
        const { code, message } = error as { code?: string; message: string };
        const codes = [
          "sandbox_start_failed",
          "image_invalid",
          "sandbox_broken",
          "sandbox_unavailable",
        ];
        if (!codes.includes(code ?? "")) failures.push(`${name}: ${code} ${message}`);
      }
      if (readdirSync(HOST.path).sort().join() !== before.join())
        failures.push(`${name}: it wrote to the host`);
      for (const own of readdirSync(image))
        if (!base.includes(own)) await removeTree(join(image, own));
    }
    expect(failures).toEqual([]);
  });
});

if (process.getuid?.() === 0) {
  test("an unprivileged user's sandboxes pass the same tests", async () => {
    const { exitCode, output } = await asUnprivilegedUser("test/sandbox/hostile-images.test.ts");
    expect({ exitCode, output: exitCode === 0 ? "" : output }).toEqual({ exitCode: 0, output: "" });
  }, 300_000);
}

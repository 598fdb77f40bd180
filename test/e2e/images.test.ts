import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { RolloutView } from "../../src/protocol/view.ts";
import type { ImageView } from "../../src/sandbox/images/catalogue.ts";
import { whyNoSifMount } from "../../src/sandbox/sif-mount.ts";
import { environment, mathRow, run, serve, simulate, turn } from "../support/binary.ts";
import { makeSif } from "../support/sif.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

setDefaultTimeout(120_000);

const APPTAINER = environment("ROLLOUTD_APPTAINER");

const SCRIPTS = [
  {
    match: "seven times six",
    variants: [
      [
        turn("execute_ipython_cell", { code: "print(7 * 6)" }),
        turn("finish", { message: "\\boxed{{{observation}}}" }),
      ],
    ],
  },
  {
    match: "take your time",
    variants: [[turn("execute_ipython_cell", { code: "import time; time.sleep(600)" })]],
  },
];

function setup() {
  const dir = tempDir();
  const cache = dir.file("cache");
  const flags = ["--image-cache", cache, "--apptainer", APPTAINER];
  const images = (...args: string[]) => run(["images", ...args, ...flags], { cwd: dir.path });
  return {
    dir,
    cache,
    flags,
    images,
    list: async () => JSON.parse((await images("list", "--json")).stdout) as ImageView[],
    [Symbol.dispose]: dir[Symbol.dispose],
  };
}

/** Whether a process has it on its command line as `stage.c` names it to squashfuse. */
function isServed(sif: string): boolean {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.some((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(`\0${sif}\0/dev/fd/`);
    } catch {
      return false;
    }
  });
}

/** A file system that is one by its looks. */
function smallRootfs(path: string): string {
  mkdirSync(`${path}/usr/bin`, { recursive: true });
  mkdirSync(`${path}/bin`);
  writeFileSync(`${path}/usr/bin/tool`, "x".repeat(1_500_000));
  return path;
}

describe("jobs of the compiled binary", () => {
  test("run from a SIF and by its name, keep it in use, and give it back, also by kill -9", async () => {
    using t = setup();
    const sif = t.dir.file("base.sif");
    await makeSif(APPTAINER, environment("ROLLOUTD_IMAGE"), sif);
    await using engine = await simulate(t.dir.path, SCRIPTS);
    const used = ["--image", sif, "--backend", engine.url, "--warm-sandboxes", "0"];
    const flags = [...t.flags, ...used];
    await using service = await serve(t.dir.file("data"), flags);
    const submit = async (problem: string, more: object = {}) => {
      const body = JSON.stringify({ instance: mathRow(problem, "42"), ...more });
      const init = { unix: service.socket, method: "POST", body };
      const response = await fetch("http://localhost/v1/rollouts?wait_ms=60000", init);
      return (await response.json()) as RolloutView;
    };
    const first = await submit("What is seven times six?");
    expect(first).toMatchObject({ state: "succeeded", reward: 1, error: null });
    expect((await t.images("add", sif, "--name", "base")).exitCode).toBe(0);
    const again = await submit("What is seven times six?", { image: "base" });
    expect(again).toMatchObject({ state: "succeeded", reward: 1, error: null });
    expect(again.timings.init.active_ms).toBeLessThan(first.timings.init.active_ms);
    const unknown = await submit("What is seven times six?", { image: "unknown" });
    expect(unknown).toMatchObject({
      state: "failed",
      reward: null,
      error: { code: "image_not_found", boundary: "sandbox", stage: "init", retryable: false },
    });
    expect(unknown.error?.message).toContain("unknown");
    // Everything was given back.
    expect(await t.list()).toMatchObject([{ names: ["base"], origin: sif, in_use: false }]);
    submit("Please take your time.", { id: "slow" }).catch(() => {});
    await waitFor(async () => (await t.list())[0]?.in_use, "the image to be in use");
    const spared = await t.images("prune", "--all", "--json");
    expect(JSON.parse(spared.stdout)).toEqual({ removed: [], bytes: 0 });
    service.signal("SIGKILL");
    await service.exited;
    const pruned = await t.images("prune", "--all", "--json");
    expect(JSON.parse(pruned.stdout).removed).toHaveLength(1);
    expect(readdirSync(`${t.cache}/.trash`)).toEqual([]);
  });

  // Where no SIF can be mounted, image_mount_bytes is refused by doctor, and by each start.
  if (whyNoSifMount(APPTAINER) === null) {
    test("run from a SIF that is mounted, and leave nobody who serves it", async () => {
      using t = setup();
      const sif = t.dir.file("base.sif");
      await makeSif(APPTAINER, environment("ROLLOUTD_IMAGE"), sif);
      await using engine = await simulate(t.dir.path, SCRIPTS);
      const mounted = ["--image", sif, "--image-mount-bytes", "1", "--backend", engine.url];
      await using service = await serve(t.dir.file("data"), [...t.flags, ...mounted]);
      const submit = async (problem: string, waitMs: number) => {
        const body = JSON.stringify({ instance: mathRow(problem, "42") });
        const init = { unix: service.socket, method: "POST", body };
        return await (await fetch(`http://localhost/v1/rollouts?wait_ms=${waitMs}`, init)).json();
      };
      const rollout = await submit("What is seven times six?", 60_000);
      expect(rollout).toMatchObject({ state: "succeeded", reward: 1, isolation: "A" });
      expect(await t.list()).toEqual([]);
      await submit("Please take your time.", 0);
      await waitFor(() => isServed(sif), "the image to be served");
      service.signal("SIGKILL");
      await service.exited;
      await waitFor(() => !isServed(sif), "whoever serves the image to end");
    });
  }

  test("are not delayed by others whose image takes long to come", async () => {
    using t = setup();
    const slow = t.dir.file("slow-apptainer");
    const pull = 'case " $* " in *" build "*) exec sleep 600;; esac';
    writeFileSync(slow, `#!/bin/sh\n${pull}\nexec ${APPTAINER} "$@"\n`, { mode: 0o755 });
    await using engine = await simulate(t.dir.path, SCRIPTS);
    const own = ["--apptainer", slow, "--image-cache", t.cache, "--init-slots", "2"];
    const flags = [...own, "--starts-at-once", "1", "--max-sandboxes-ahead", "2"];
    const image = ["--image", environment("ROLLOUTD_IMAGE"), "--backend", engine.url];
    await using service = await serve(t.dir.file("data"), [...flags, ...image]);
    const instance = mathRow("What is seven times six?", "42");
    const waiting = ["a:1", "a:1", "b:1", "c:1", "d:1"].map((name) => ({
      instance,
      image: `docker://127.0.0.1:1/${name}`,
    }));
    const submit = async (body: object, waitMs: number) => {
      const init = { unix: service.socket, method: "POST", body: JSON.stringify(body) };
      const url = `http://localhost/v1/rollouts?wait_ms=${waitMs}`;
      return await (await fetch(url, init)).json();
    };
    await submit({ rollouts: waiting }, 0);
    expect(await submit({ instance }, 100_000)).toMatchObject({ state: "succeeded", reward: 1 });
  });

  test("with an image that is no image are refused, with the field", async () => {
    using t = setup();
    const programs = ["--apptainer", environment("ROLLOUTD_APPTAINER"), "--port", "0"];
    const flags = [...programs, "--image", "no:image", "--data-dir", t.dir.file("data")];
    const refused = await run(["serve", ...flags]);
    expect(refused).toMatchObject({ exitCode: 2, stdout: "" });
    expect(refused.stderr).toContain("--image no:image: must be a name, an absolute path");
  });
});

describe("rolloutd images", () => {
  test("adds, lists, verifies, prunes and removes", async () => {
    using t = setup();
    const root = smallRootfs(t.dir.file("small"));
    expect(await t.images("list")).toEqual({ stdout: "no images\n", stderr: "", exitCode: 0 });
    // A relative path is relative to where the user is.
    const added = await t.images("add", "./small");
    const [view] = await t.list();
    const digest = view?.digest.slice(0, 12) ?? "";
    const day = new Date().toISOString().slice(0, 10);
    expect(added.stderr).toBe("");
    expect(added.stdout.replace(/\d\d:\d\d/, "TIME").replace(root, "ROOT")).toBe(
      `name   digest         MB  in use  last used${" ".repeat(9)}origin\nsmall  ${digest}  1.5  no      ${day} TIME  ROOT\n`,
    );
    const whole = { stdout: "1 of 1 images are whole\n", stderr: "", exitCode: 0 };
    expect(await t.images("verify", "small")).toEqual(whole);
    const pruned = { stdout: "removed 1 images, 1.5 MB\n", stderr: "", exitCode: 0 };
    expect(await t.images("prune", "--to", "1000")).toEqual(pruned);
    expect((await t.images("list")).stdout).toContain("pruned");
    expect((await t.images("add", root, "--name", "small")).exitCode).toBe(0);
    rmSync(`${t.cache}/${view?.digest}/rootfs/usr/bin/tool`);
    const damaged = "damaged: small\n0 of 1 images are whole\n";
    expect(await t.images("verify")).toEqual({ stdout: damaged, stderr: "", exitCode: 1 });
    expect(await t.images("remove", "small")).toEqual({ stdout: "", stderr: "", exitCode: 0 });
    expect(await t.list()).toEqual([]);
  });

  test("says what is wrong with a command line, and what failed", async () => {
    using t = setup();
    const usage = [
      [[], "an action is missing"],
      [["frobnicate"], 'there is no action "frobnicate"'],
      [["add"], "add takes an image"],
      [["add", "/a", "/b"], "unexpected argument: /b"],
      [["remove"], "remove takes names of images"],
      [["prune", "--to", "much"], '--to takes a whole number of at least 0, not "much"'],
      [["list", "--image-cache-bytes", "none"], "--image-cache-bytes"],
    ] as const;
    for (const [args, message] of usage) {
      const { exitCode, stderr } = await t.images(...args);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)]);
    }
    const failures = [
      [2, ["add", "/no/such.sif"], "there is no image at /no/such.sif"],
      [2, ["add", "a-name"], '"a-name" is a name'],
      [1, ["add", "docker://127.0.0.1:1/none:1"], "docker://127.0.0.1:1/none:1 can't be fetched"],
      [2, ["remove", "nobody"], "there is no image named nobody"],
    ] as const;
    for (const [code, args, message] of failures) {
      const { exitCode, stdout, stderr } = await t.images(...args);
      expect([exitCode, stdout, stderr]).toEqual([code, "", expect.stringContaining(message)]);
    }
    expect(existsSync(`${t.cache}/.tmp`) && readdirSync(`${t.cache}/.tmp`)).toEqual([]);
  });
});

import { describe, expect, test } from "bun:test";
import { chmod, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ErrorCode, ServiceError } from "../../src/errors.ts";
import type { SandboxHandle, SandboxSpec } from "../../src/sandbox/sandbox.ts";
import { startWithAttempts } from "../../src/sandbox/start-attempts.ts";
import { asUnavailable } from "../../src/sandbox/unavailable.ts";
import { fakeHandle } from "../support/fake-sandbox.ts";
import { failure, LIMITS, NO_ABORT, required, setup } from "./setup.ts";

const SPEC: SandboxSpec = {
  id: "job.1",
  image: "/image",
  writable: "tmpfs",
  limits: { ...LIMITS, startTimeoutMs: 10_000 },
};

/** A driver whose first `failures` starts fail with `code`; it notes the time that each was given. */
function failing(failures: number, code: ErrorCode = "sandbox_start_failed") {
  const givenMs: number[] = [];
  const start = async ({ limits }: SandboxSpec): Promise<SandboxHandle> => {
    givenMs.push(limits.startTimeoutMs);
    if (givenMs.length > failures) return fakeHandle("started");
    throw new ServiceError(code, "no luck", { mend: "wait" });
  };
  return { givenMs, start };
}

describe("a start", () => {
  test("that fails for a passing reason is tried again, each time with half of what is left", async () => {
    const { start, givenMs } = failing(2);
    expect(await startWithAttempts(start, SPEC, 3, NO_ABORT)).toEqual(fakeHandle("started"));
    const [first = 0, second = 0, last = 0] = givenMs;
    expect(first).toBeWithin(4990, 5001);
    expect(second).toBeWithin(4500, 4976);
    expect(last).toBeWithin(9000, 9850);
    expect(givenMs).toHaveLength(3);
  });

  test("that keeps failing says how often it was tried", async () => {
    const { start, givenMs } = failing(9);
    const error = await failure(startWithAttempts(start, SPEC, 3, NO_ABORT));
    expect(error).toMatchObject({ code: "sandbox_start_failed", mend: "wait" });
    expect(error.message).toMatch(/^no luck \(attempt 3, after \d+ ms\)$/);
    expect(givenMs).toHaveLength(3);
  });

  test.each([
    "image_not_found",
    "image_invalid",
    "sandbox_unavailable",
    "disk_full",
    "instance_invalid",
  ] as const)("that fails with %s is not tried again", async (code) => {
    const { start, givenMs } = failing(9, code);
    const error = await failure(startWithAttempts(start, SPEC, 3, NO_ABORT));
    expect([error.code, error.message, givenMs.length]).toEqual([code, "no luck", 1]);
  });

  test("that fails because processes ran out is tried again, unlike one that the node forbids", () => {
    const said = (why: string) =>
      new ServiceError("sandbox_start_failed", `bwrap: Creating new namespace failed: ${why}`);
    const codeOf = (why: string) =>
      (asUnavailable(said(why), [[/namespace/, "raise it"]]) as ServiceError).code;
    expect(codeOf("Resource temporarily unavailable")).toBe("sandbox_start_failed");
    expect(codeOf("Operation not permitted")).toBe("sandbox_unavailable");
  });

  test("is not tried again when its time is over", async () => {
    const { start, givenMs } = failing(9);
    const hasty = { ...SPEC, limits: { ...LIMITS, startTimeoutMs: 20 } };
    await failure(startWithAttempts(start, hasty, 3, NO_ABORT));
    expect(givenMs).toHaveLength(1);
  });

  test("that is cancelled between two attempts ends at once", async () => {
    const abort = new AbortController();
    const { start, givenMs } = failing(9);
    const aborting = (spec: SandboxSpec) => {
      setTimeout(() => abort.abort(new Error("cancelled")));
      return start(spec);
    };
    const error = await failure(startWithAttempts(aborting, SPEC, 3, abort.signal));
    expect([error.message, givenMs.length]).toEqual(["cancelled", 1]);
  });

  test("by an Apptainer that fails twice succeeds in a folder of its own and leaves one", async () => {
    await using bundle = await setup("apptainer");
    const log = join(bundle.dataDir, "log");
    const flaky = join(bundle.dataDir, "flaky");
    const script = `[ "$1" = buildcfg ] && exec ${required("ROLLOUTD_APPTAINER")} "$@"
echo "$*" | grep -o "workdir [^ ]*" >>${log}
[ $(wc -l <${log}) -gt 2 ] || { echo "resource temporarily unavailable" >&2; exit 255; }
exec ${required("ROLLOUTD_APPTAINER")} "$@"`;
    await writeFile(flaky, `#!/bin/sh\n${script}\n`);
    await chmod(flaky, 0o755);
    await using it = await setup("apptainer", { apptainer: flaky, startAttempts: 3 });
    // Why a start failed is found out by further ones of an empty image, at either level.
    const handle = await it.start({ id: "job.1" });
    const folders = (await readFile(log, "utf8")).trim().split("\n");
    expect(new Set(folders).size).toBe(folders.length);
    expect(handle.isolation).toBe("A");
    const left = await readdir(join(it.dataDir, "sandboxes"));
    expect(left.filter((name) => name !== ".trash")).toEqual([handle.dir.split("/").at(-1) ?? ""]);
  }, 60_000);
});

import { expect, test } from "bun:test";
import { join } from "node:path";
import type { RolloutView } from "../../src/protocol/view.ts";
import { environment, serve } from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const MB = 1024 * 1024;
const ECHO = { data_source: "echo", run_ms: 2000 };

test("P18: on a full disk submits get 507, and everything that was acknowledged ends as it should", async () => {
  using dir = tempDir();
  // A disk of 48 MB that only the service sees.
  const disk = ["--size", String(48 * MB), "--tmpfs", dir.path];
  const prefix = [environment("ROLLOUTD_BWRAP"), "--dev-bind", "/", "/", ...disk, "--"];
  const flags = ["--disk-floor-bytes", String(16 * MB), "--disk-ballast-bytes", String(4 * MB)];
  await using service = await serve(join(dir.path, "data"), flags, { prefix });
  const send = (path: string, body?: unknown) =>
    fetch(
      `${service.url}${path}`,
      body
        ? {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(body),
          }
        : {},
    );
  const filler = { data_source: "echo", filler: "x".repeat(MB) };
  const accepted: string[] = [];
  const refused = await waitFor(async () => {
    const id = `r${accepted.length}`;
    const instance = accepted.length % 2 ? filler : ECHO;
    const response = await send("/v1/rollouts", { id, instance });
    if (response.status === 201) accepted.push(id);
    return response.status !== 201 && response;
  }, "the disk to be full");
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([507, "30"]);
  expect(((await refused.json()) as { error: { code: string } }).error.code).toBe("disk_full");
  expect(accepted.length).toBeGreaterThan(10);
  const finished = await waitFor(async () => {
    const page = await (await send("/v1/rollouts?order=finished&limit=1000")).json();
    const { rollouts } = page as { rollouts: RolloutView[] };
    return rollouts.length === accepted.length && rollouts;
  }, "all that was acknowledged to end");
  expect(finished.map(({ id }) => id).toSorted()).toEqual(accepted.toSorted());
  expect(finished.filter(({ state }) => state !== "succeeded")).toEqual([]);
  expect((await send("/healthz")).status).toBe(200);
}, 60_000);

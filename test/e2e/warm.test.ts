import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { isRunning } from "../../src/lib/proc.ts";
import { ProcessLook } from "../../src/lib/process-look.ts";
import type { RolloutView } from "../../src/protocol/view.ts";
import type { SandboxRecord } from "../../src/sandbox/directory.ts";
import { environment, mathRow, sandboxFlags, serve, simulate, turn } from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const SCRIPTS = [{ match: "two", variants: [[turn("finish", { message: "\\boxed{4}" })]] }];

test("sandboxes are kept ready for an image in demand, used, and end with the service, also by kill -9", async () => {
  using dir = tempDir();
  const data = dir.file("data");
  await using engine = await simulate(dir.path, SCRIPTS);
  const driver = ["--driver", "bubblewrap", "--bwrap", environment("ROLLOUTD_BWRAP")];
  const flags = [...sandboxFlags(), ...driver, "--warm-sandboxes", "2", "--backend", engine.url];
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    await using service = await serve(data, flags);
    const rollout = async (): Promise<RolloutView> => {
      const body = JSON.stringify({ instance: mathRow("two and two", "4") });
      const init = {
        unix: service.socket,
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      };
      const url = "http://localhost/v1/rollouts?wait_ms=60000";
      return (await (await fetch(url, init)).json()) as RolloutView;
    };
    for (let i = 0; i < 2; i++) expect(await rollout()).toMatchObject({ reward: 1 });
    const ready = await waitFor(() => readyIn(data, 2), "two sandboxes to be ready");
    expect(await rollout()).toMatchObject({ reward: 1, isolation: "A" });
    const used = ready.filter(({ handle }) => !existsSync(handle.dir));
    expect(used).toHaveLength(1);
    const left = (await waitFor(() => readyIn(data, 2), "another one")).map(({ handle }) => handle);
    service.signal(signal);
    await service.exited;
    const alive = () =>
      left.filter(
        ({ holderPid, holderStartTime, dir }) =>
          isRunning(holderPid, holderStartTime) ||
          new ProcessLook().mounting(basename(dir)).length > 0,
      );
    await waitFor(() => alive().length === 0, "them to end");
    if (signal === "SIGTERM") expect(readyIn(data, 0)).toEqual([]);
  }
}, 120_000);

/** The records of a number of sandboxes that have all started; null until there are so many. */
function readyIn(data: string, count: number): SandboxRecord[] | null {
  const root = join(data, "sandboxes");
  const names = readdirSync(root).filter((name) => name !== ".trash");
  const records = names.flatMap((name): SandboxRecord[] => {
    try {
      return [JSON.parse(readFileSync(join(root, name, "record.json"), "utf8"))];
    } catch {
      return [];
    }
  });
  const started = records.filter(({ handle }) => handle.holderPid > 0);
  return started.length === count && names.length === count ? started : null;
}

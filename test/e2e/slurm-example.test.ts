import { expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { BINARY } from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const SCRIPT = resolve(import.meta.dir, "../../scripts/examples/slurm.sh");

/** The script as Slurm's batch shell, with a `scontrol` that notes what it is told. */
function batchJob(dir: { path: string; file(name: string): string }) {
  writeFileSync(dir.file("scontrol"), `#!/bin/sh\necho "$*" >>${dir.file("told")}\n`);
  chmodSync(dir.file("scontrol"), 0o755);
  const data = dir.file("data");
  const shell = Bun.spawn(["bash", SCRIPT, "--port", "0", "--drain-ms", "1"], {
    env: {
      ...{ PATH: `${dir.path}:${process.env.PATH}`, HOME: dir.path, SLURM_JOB_ID: "7" },
      ...{ ROLLOUTD: BINARY, ROLLOUTD_DATA_DIR: data },
    },
    ...{ stdin: "ignore", stdout: "ignore", stderr: "ignore" },
  });
  const unix = `${data}/rolloutd.sock`;
  const state = async (): Promise<string> => {
    const response = await fetch("http://localhost/v1/rollouts/a", { unix });
    const { state, stage, attempt } = (await response.json()) as Record<string, unknown>;
    return `${attempt} ${stage} ${state}`;
  };
  return { shell, unix, state, ready: () => waitFor(() => existsSync(unix), "the service") };
}

test("P11: a service in a Slurm job hands its work on to the next start of the job, and ends there when it has none", async () => {
  using dir = tempDir();
  const first = batchJob(dir);
  await first.ready();
  const body = JSON.stringify({ id: "a", instance: { data_source: "echo", run_ms: 600_000 } });
  await fetch("http://localhost/v1/rollouts", { unix: first.unix, method: "POST", body });
  await waitFor(async () => (await first.state()) === "1 run active", "RUN");
  first.shell.kill("SIGUSR1");
  expect(await first.shell.exited).toBe(75);
  expect(readFileSync(dir.file("told"), "utf8")).toBe("requeue 7\n");
  const second = batchJob(dir);
  await second.ready();
  await waitFor(async () => (await second.state()) === "2 run active", "RUN again");
  const url = "http://localhost/v1/rollouts/a?wait_ms=20000";
  await fetch(url, { unix: second.unix, method: "DELETE" });
  second.shell.kill("SIGTERM");
  expect(await second.shell.exited).toBe(0);
  expect(readFileSync(dir.file("told"), "utf8")).toBe("requeue 7\n");
});

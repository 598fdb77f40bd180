import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { descendantsOf, killProcess } from "../../src/lib/proc.ts";
import type { RolloutView } from "../../src/protocol/view.ts";
import { driverFlags, sandboxFlags, serve, simulate, turn } from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";
import { processesOf } from "../support/traces.ts";
import { waitFor } from "../support/wait-for.ts";

const FINISHED = [turn("finish", { message: "done" })];
/** PID 1 of the sandbox takes no notice of the payload's own signals. */
const ROW = {
  ...{ data_source: "command", instruction: "scored" },
  verifier: { command: "kill -TERM 1; sleep 97; exit 0", timeout_ms: 60_000 },
};

for (const driver of ["apptainer", "bubblewrap"]) {
  test(`P5, P11: ${driver}: what a batch system's SIGTERM to all processes ends in a sandbox is no result, and no attempt`, async () => {
    using dir = tempDir();
    using state = tempDir();
    await using engine = await simulate(dir.path, [{ match: "scored", variants: [FINISHED] }]);
    const flags = [
      ...[...driverFlags(driver), ...sandboxFlags()],
      ...["--backend", engine.url, "--engine", "text", "--drain-ms", "60000"],
    ];
    const read = async (socket: string) => {
      const response = await fetch("http://localhost/v1/rollouts/a", { unix: socket });
      return (await response.json()) as RolloutView;
    };
    await using service = await serve(state.path, flags);
    const body = JSON.stringify({ id: "a", num_attempts: 1, instance: ROW });
    await fetch("http://localhost/v1/rollouts", { unix: service.socket, method: "POST", body });
    const scoring = () => processesOf(state.path).some((line) => / sleep 97$/.test(line));
    await waitFor(scoring, "the verifier's command");
    const all = [service.pid, ...descendantsOf(service.pid)];
    for (const pid of all) killProcess(pid, "SIGTERM");
    expect(await service.exited).toBe(75);
    expect(readdirSync(join(state.path, "sandboxes"))).toEqual([]);
    await using next = await serve(state.path, flags);
    const { attempt, failures, reward, error } = await read(next.socket);
    expect([attempt, failures, reward, error]).toEqual([2, [], null, null]);
    next.signal("SIGTERM");
    next.signal("SIGINT");
  }, 60_000);
}

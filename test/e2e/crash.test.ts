import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RolloutView } from "../../src/protocol/view.ts";
import { mathRow, type Service, sandboxFlags, serve, simulate, turn } from "../support/binary.ts";
import { openCopy } from "../support/database-copy.ts";
import { tempDir } from "../support/temp-dir.ts";
import { processesOf } from "../support/traces.ts";
import { waitFor } from "../support/wait-for.ts";

const KILLS = Number(process.env.ROLLOUTD_TEST_KILLS ?? 20);
const MAX_LIFE_MS = 1_500;
const ECHO_BATCH = 20;

type Request = { id: string; instance: Record<string, unknown> };

/** Keeps submitting until the service dies under it. Notes what was acknowledged, and what may have been. */
async function load(
  service: Service,
  round: number,
  acknowledged: Set<string>,
  unsure: Request[][],
): Promise<void> {
  const stuck = unsure.splice(0);
  for (let batch = 0; ; batch++) {
    const rollouts = stuck.pop() ?? newBatch(round, batch);
    try {
      const response = await fetch("http://localhost/v1/rollouts", {
        unix: service.socket,
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ rollouts }),
      });
      if (!response.ok) throw new Error(`not acknowledged: ${await response.text()}`);
      for (const { id } of rollouts) acknowledged.add(id);
    } catch {
      unsure.push(rollouts, ...stuck);
      return;
    }
  }
}

function newBatch(round: number, batch: number): Request[] {
  const echo = Array.from({ length: ECHO_BATCH }, (_, index) => ({
    id: `e${round}-${batch}-${index}`,
    instance: { data_source: "echo", run_ms: index },
  }));
  if (batch > 0) return echo;
  // Real sandboxes, with an agent that leaves processes that don't want to go.
  return [...echo, { id: `m${round}`, instance: mathRow("crash", "2") }];
}

const HOSTILE = `import subprocess
stubborn = ["sh", "-c", "trap '' TERM HUP INT; sleep 300 & sleep 300"]
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
for new_session in (True, False):
    subprocess.Popen(stubborn, start_new_session=new_session, **quiet)
print(1 + 1)`;

/** Stages in which a kill met active jobs. @throws where the file is not whole, or a final job has changed */
function autopsy(data: string, ended: Map<string, string>): string[] {
  using copy = openCopy(data);
  const { db } = copy;
  expect(db.query("PRAGMA integrity_check").values()).toEqual([["ok"]]);
  const final =
    "SELECT id, state || ifnull(reward, '') || finished_seq FROM jobs WHERE finished_ms > 0";
  for (const [id, end] of db.query(final).values() as [string, string][]) {
    expect([id, end]).toEqual([id, ended.get(id) ?? end]);
    ended.set(id, end);
  }
  const active = db.query("SELECT DISTINCT stage FROM jobs WHERE state = 'active'").values();
  return active.flat() as string[];
}

test(`P1, P3, P6, P7: after ${KILLS} kills every acknowledged job has finished exactly once, and nothing is left`, async () => {
  using dir = tempDir();
  // A folder of its own, whose name no other process has in its command line.
  using state = tempDir();
  const data = state.path;
  const scripts = [
    turn("execute_ipython_cell", { code: HOSTILE }),
    turn("finish", { message: "\\boxed{{{observation}}}" }),
  ];
  await using engine = await simulate(dir.path, [{ match: "crash", variants: [scripts] }]);
  const flags = [...sandboxFlags(), "--backend", engine.url, "--max-crashes", "1000"];
  const acknowledged = new Set<string>();
  const unsure: Request[][] = [];
  let seed = 20261121;
  const random = () => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed / 2147483648;
  };
  let orphaned = 0;
  /** Submits that a kill left without an answer: it came before, in, or right after their commit. */
  let unanswered = 0;
  const hit = new Set<string>();
  const ended = new Map<string, string>();
  for (let round = 0; round < KILLS; round++) {
    const service = await serve(data, flags);
    const loading = load(service, round, acknowledged, unsure);
    const deathMs = performance.now() + random() * MAX_LIFE_MS;
    await waitFor(() => performance.now() >= deathMs, "the moment of death");
    service.signal("SIGKILL");
    await service.exited;
    await loading;
    unanswered += unsure.length;
    for (const stage of autopsy(data, ended)) hit.add(stage);
    orphaned += readdirSync(join(data, "sandboxes")).length;
    // The lifelines are cut with the service, so its sandboxes go without anyone's help.
    await waitFor(
      () => processesOf(data).length === 0,
      `round ${round}: nothing to be left`,
      5_000,
    );
  }
  // Otherwise the kills came too early to show anything.
  expect([orphaned > 0, unanswered > KILLS / 2]).toEqual([true, true]);
  expect([...hit].toSorted()).toEqual(["eval", "init", "run"]);
  {
    await using service = await serve(data, flags);
    // A client that got no answer asks again under the same ids.
    for (const rollouts of unsure) {
      const body = JSON.stringify({ rollouts });
      const init = {
        unix: service.socket,
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      };
      expect((await fetch("http://localhost/v1/rollouts", init)).status).toBeOneOf([200, 201]);
      for (const { id } of rollouts) acknowledged.add(id);
    }
    const finished = await readAll(service, acknowledged.size);
    const ids = finished.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect([...acknowledged].filter((id) => !ids.includes(id))).toEqual([]);
    expect(ids.filter((id) => !acknowledged.has(id))).toEqual([]);
    const rewards = finished.filter(({ state, reward }) => state !== "succeeded" || reward !== 1);
    expect(rewards).toEqual([]);
  }
  expect(processesOf(data)).toEqual([]);
  expect(readdirSync(join(data, "sandboxes"))).toEqual([]);
  expect(readdirSync(data).filter((name) => name.endsWith(".sock"))).toEqual([]);
  expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(data);
}, 3_600_000);

/** The log of finished rollouts, read to the end of what was accepted. */
async function readAll(service: Service, count: number): Promise<RolloutView[]> {
  const seen: RolloutView[] = [];
  let after = 0;
  await waitFor(
    async () => {
      const query = `order=finished&limit=1000&wait_ms=1000&after=${after}`;
      const url = `http://localhost/v1/rollouts?${query}`;
      const response = await fetch(url, { unix: service.socket });
      const page = (await response.json()) as { rollouts: RolloutView[]; next: number };
      seen.push(...page.rollouts);
      after = page.next;
      return seen.length >= count;
    },
    "every acknowledged job to finish",
    120_000,
  );
  return seen;
}

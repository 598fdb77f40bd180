import { readFileSync } from "node:fs";
import { join } from "node:path";
import { closeDatabase, openDatabase } from "../src/store/database.ts";
import { Store } from "../src/store/store.ts";
import { type Service, serve } from "../test/support/binary.ts";
import { storeJob, TO_THE_END } from "../test/support/jobs.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { percentile, print, round } from "./line.ts";

const FINISHED = 1_000_000;
const QUEUED = 100_000;
const CALLS = 300;

const IDLE_KIND = join(import.meta.dir, "idle-kind.ts");
/** One is in INIT and the others wait for it, so that only the API is measured. */
const IDLE = { data_source: "idle" };

const CASES: [what: string, path: string, body?: unknown][] = [
  ["submit", "/v1/rollouts", { instance: IDLE }],
  ["the first finished ones", "/v1/rollouts?order=finished&limit=20"],
  ["the last finished ones", `/v1/rollouts?order=finished&limit=20&after=${FINISHED - 20}`],
  ["what failed", "/v1/rollouts?state=failed&limit=20"],
  ["what waits", "/v1/rollouts?state=pending&limit=20"],
  ["a label", "/v1/rollouts?label=step:7&limit=20"],
  ["status", "/v1/status"],
];

/** Whether a service with a million finished jobs is as quick as an empty one. */
export async function million(): Promise<void> {
  using empty = tempDir();
  using full = tempDir();
  fill(full.path);
  await using first = await started("empty", empty.path);
  const floor = await measure(first);
  await using second = await started(`${FINISHED} finished, ${QUEUED} queued`, full.path);
  const times = await measure(second);
  for (const [index, [what]] of CASES.entries()) {
    const [ours, theirs] = [times[index] ?? [], floor[index] ?? []];
    const ratio = round(percentile(ours, 0.5) / percentile(theirs, 0.5));
    print({
      ...{ bench: "million", case: what, n: CALLS, unit: "ms" },
      ...{ p50: percentile(ours, 0.5), p99: percentile(ours, 0.99) },
      ...{ against: "an empty service", ratio },
    });
  }
}

async function started(what: string, folder: string): Promise<Service> {
  const startMs = performance.now();
  const service = await serve(folder, ["--init-slots", "1", "--tasks", IDLE_KIND]);
  const ms = round(performance.now() - startMs);
  const kb = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${service.pid}/status`, "utf8"))?.[1];
  const memory = `RSS ${Math.round(Number(kb) / 1024)} MB`;
  print({
    bench: "million",
    case: `start-up, ${what}: ${memory}`,
    n: 1,
    p50: ms,
    p99: ms,
    unit: "ms",
  });
  return service;
}

async function measure(service: Service): Promise<number[][]> {
  const all: number[][] = [];
  for (const [, path, body] of CASES) {
    const times: number[] = [];
    for (let call = 0; call < CALLS; call++) {
      const init = body
        ? {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(body),
          }
        : {};
      const startMs = performance.now();
      await (await fetch(service.url + path, init)).arrayBuffer();
      times.push(performance.now() - startMs);
    }
    all.push(times);
  }
  return all;
}

/** Copies one finished and one waiting job as often as needed, inside SQLite. */
function fill(folder: string): void {
  {
    using store = new Store(folder);
    storeJob(store, "finished", TO_THE_END, { taskKind: "echo" });
    storeJob(store, "waiting", [], { taskKind: "idle", instance: JSON.stringify(IDLE) });
  }
  const db = openDatabase(folder);
  const names = db.query<{ name: string }, []>("SELECT name FROM pragma_table_info('jobs')").all();
  const copied = names.map(({ name }) => name).filter((name) => name !== "seq");
  const copy = (from: string, count: number, changes: Record<string, string>) => {
    const values = copied.map((name) => changes[name] ?? name).join(", ");
    db.run(
      `WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i <= ${count})
       INSERT INTO jobs (${copied.join(", ")}) SELECT ${values} FROM n, jobs WHERE id = '${from}'`,
    );
    db.run(
      `INSERT INTO job_bodies SELECT jobs.seq, body_sha256, instance, options, priority, labels, outcome
       FROM jobs, job_bodies WHERE job_seq = (SELECT seq FROM jobs WHERE id = '${from}')
         AND jobs.seq NOT IN (SELECT job_seq FROM job_bodies)`,
    );
  };
  copy("finished", FINISHED, { id: "'f' || i", finished_seq: "i" });
  // The time limit of the template has long passed.
  copy("waiting", QUEUED, { id: "'w' || i", deadline_ms: "9e15" });
  db.run("UPDATE jobs SET deadline_ms = 9e15 WHERE finished_ms IS NULL");
  db.run("UPDATE jobs SET finished_ms = unixepoch() * 1000 WHERE finished_ms IS NOT NULL");
  db.run("INSERT INTO labels SELECT 'step', seq % 100, seq FROM jobs");
  closeDatabase(db);
}

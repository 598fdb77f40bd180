import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { serve, start } from "../support/binary.ts";
import { bugOf, oddRequests } from "../support/odd-requests.ts";
import { tempDir } from "../support/temp-dir.ts";

const REQUESTS = Number(process.env.ROLLOUTD_TEST_FUZZ ?? 1500);
const SEED = Number(process.env.ROLLOUTD_TEST_SEED ?? Date.now() % 2 ** 31);
const CLIENTS = 4;
const GROWTH_BYTES = 128 * 1024 * 1024;

test(`${REQUESTS} odd requests to the binary, by both ways, end neither it nor in a bug, and it does not grow`, async () => {
  using dir = tempDir();
  await using engine = await start(["simulate", "--port", "0", "--policy", "random"]);
  // What is accepted ends soon, so that those who wait for it, as others' APIs do, have their answer.
  await using service = await serve(dir.file("data"), [
    ...["--backend", engine.line, "--max-queued-jobs", "500", "--total-limit-ms", "3000"],
    ...["--init-limit-ms", "500", "--run-limit-ms", "500", "--eval-limit-ms", "500"],
  ]);
  const rssBytes = () => {
    const status = readFileSync(`/proc/${service.pid}/status`, "utf8");
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024;
  };
  const next = oddRequests(SEED);
  const bad: unknown[] = [];
  let sent = 0;
  const statuses = new Map<number, number>();
  const client = async (until: number) => {
    while (sent < until && bad.length < 3) {
      const { path, ...init } = next();
      const bySocket = sent++ % 2 === 0;
      const url = bySocket ? "http://localhost" : service.url;
      const way = bySocket ? { unix: service.socket } : {};
      const signal = AbortSignal.timeout(30_000);
      const response = await fetch(url + path, { ...init, ...way, signal }).catch((error) => {
        bad.push({ seed: SEED, path, ...init, error: String(error) });
        return new Response(null, { status: 299 });
      });
      // A stream is left after its first bytes.
      if (response.headers.get("content-type") === "text/event-stream")
        await response.body?.cancel();
      else await response.arrayBuffer();
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
      const status = bugOf(response);
      if (status !== null) bad.push({ seed: SEED, path, ...init, status });
    }
  };
  const clients = (until: number) =>
    Promise.all(Array.from({ length: CLIENTS }, () => client(until)));
  await clients(REQUESTS / 3);
  const before = rssBytes();
  await clients(REQUESTS);
  expect(bad).toEqual([]);
  const grown = rssBytes() - before;
  console.log(
    `seed ${SEED}:`,
    JSON.stringify({ before, grown, statuses: [...statuses].toSorted() }),
  );
  expect(grown).toBeLessThan(GROWTH_BYTES);
  const health = await fetch("http://localhost/healthz", { unix: service.socket });
  expect([health.status, service.stderr().includes("bug")]).toEqual([200, false]);
}, 3_600_000);

import { expect, test } from "bun:test";
import { mathRow, run, type Service, serve, simulate } from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const RIGHT = [{ content: "It is \\boxed{4}.", delay_ms: 60 }];
const WRONG = [{ content: "It is \\boxed{5}.", delay_ms: 20 }];

/** Every third row is always right, every third always wrong, and the others depend on the seed. */
const SCRIPTS = [
  { match: "easy", variants: [RIGHT] },
  { match: "hard", variants: [WRONG] },
  { match: "mixed", variants: [RIGHT, WRONG] },
];
const rows = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    ...mathRow(`${["easy", "hard", "mixed"][index % 3]} ${index}: what is 2 + 2?`, "4"),
    ...{ data_source: "reasoning", verifier: "math" },
    instance_id: `row-${index}`,
  }));

async function call(service: Service, method: string, path: string, body?: unknown) {
  const init =
    body === undefined
      ? {}
      : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const url = `http://localhost${path}`;
  const response = await fetch(url, { unix: service.socket, method, ...init });
  // biome-ignore lint/suspicious/noExplicitAny: what the assertions look at is what is tested.
  return (await response.json()) as any;
}

test("a batch goes on after kill -9, and brings each of its groups once", async () => {
  using dir = tempDir();
  await using engine = await simulate(dir.path, SCRIPTS);
  const flags = ["--run-slots", "6", "--backend", engine.url];
  const data = dir.file("data");
  let service = await serve(data, flags);
  await call(service, "POST", "/v1/batches", {
    ...{ id: "b", num_samples: 4, goal: { groups: 8 } },
    ...{ instances: rows(40), unfinished: "end", sampling: { seed: 0 } },
  });
  const seen: string[] = [];
  for (const enough of [2, 5, 8]) {
    while (seen.length < enough) {
      const path = `/v1/batches/b/groups?after=${seen.length}&limit=1&wait_ms=20000`;
      const { groups } = await call(service, "GET", path);
      seen.push(...groups.map(({ id }: { id: string }) => id));
    }
    if (enough === 8) break;
    service.signal("SIGKILL");
    await service.exited;
    service = await serve(data, flags);
  }
  const batch = await call(service, "GET", "/v1/batches/b?wait_ms=20000");
  expect(batch).toMatchObject({ state: "complete", delivered: 8 });
  const { groups } = await call(service, "GET", "/v1/batches/b/groups?limit=100&advantages=grpo");
  expect(groups.map(({ id }: { id: string }) => id)).toEqual(seen);
  expect(new Set(seen).size).toBe(8);
  for (const group of groups) expect(group.rewards.toSorted()).toEqual([0, 0, 1, 1]);
  await waitFor(async () => {
    const { unfinished } = await call(service, "GET", "/v1/status");
    return unfinished === 0;
  }, "what is left to end");
  await service[Symbol.asyncDispose]();
});

test("what a batch leaves unfinished goes on in the next one after kill -9, with what it has", async () => {
  using dir = tempDir();
  await using engine = await simulate(dir.path, SCRIPTS);
  const flags = ["--run-slots", "8", "--backend", engine.url];
  const data = dir.file("data");
  let service = await serve(data, flags);
  const plan = { num_samples: 4, goal: { groups: 3 }, sampling: { seed: 0 } };
  const begun = { id: "b", ...plan, instances: rows(30), unfinished: "keep" };
  await call(service, "POST", "/v1/batches", begun);
  await call(service, "GET", "/v1/batches/b?wait_ms=20000");
  service.signal("SIGKILL");
  await service.exited;
  service = await serve(data, flags);
  await call(service, "POST", "/v1/batches", { id: "n", ...plan, carry_from: "b" });
  service.signal("SIGKILL");
  await service.exited;
  service = await serve(data, flags);
  const batch = await call(service, "GET", "/v1/batches/n?wait_ms=20000");
  expect(batch).toMatchObject({ state: "complete", delivered: 3 });
  const seen: string[] = [];
  for (const id of ["b", "n"]) {
    const { groups } = await call(service, "GET", `/v1/batches/${id}/groups`);
    for (const group of groups) {
      expect(group.rewards.toSorted()).toEqual([0, 0, 1, 1]);
      seen.push(group.id);
    }
  }
  expect([seen.length, new Set(seen).size]).toEqual([6, 6]);
  await service[Symbol.asyncDispose]();
}, 60_000);

test("run --informative shows the groups and writes them", async () => {
  using dir = tempDir();
  await using engine = await simulate(dir.path, SCRIPTS);
  await using service = await serve(dir.file("data"), ["--backend", engine.url]);
  const file = dir.file("rows.jsonl");
  const lines = rows(30).map((row) => `${JSON.stringify(row)}\n`);
  await Bun.write(file, lines.join(""));
  const out = dir.file("groups.jsonl");
  const flags = ["--informative", "3", "--group-size", "4", "--out", out];
  const { stdout, exitCode } = await run(["run", file, "--server", service.socket, ...flags]);
  expect(stdout).toContain("3 of 3 informative groups");
  expect(exitCode).toBe(0);
  const groups = (await Bun.file(out).text())
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(groups).toHaveLength(3);
  for (const { members } of groups) {
    expect(members).toHaveLength(4);
    expect(members[0].trajectory.turns).toHaveLength(1);
  }
  const few = ["--informative", "11", "--group-size", "2", "--out", out, "--force"];
  const exhausted = await run(["run", file, "--server", service.socket, ...few]);
  expect(exhausted.stdout).toContain("its instances gave 10 informative groups");
  expect(exhausted.exitCode).toBe(1);
});

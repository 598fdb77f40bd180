import { expect, test } from "bun:test";
import { cpSync } from "node:fs";
import { listen } from "../../src/server/listen.ts";
import type { Disk } from "../../src/store/disk-file.ts";
import { Store } from "../../src/store/store.ts";
import { randomFrom } from "../support/random.ts";
import { tempDir } from "../support/temp-dir.ts";
import { testDisk } from "../support/test-disk.ts";
import { ECHO, setup } from "./setup.ts";

const JSON_TYPE = { "content-type": "application/json" };

const CLIENTS = 6;
const JOBS_EACH = 8;

/** The service, listening, on a disk that has only what it was asked to sync. */
async function service(sync: Disk["sync"]) {
  const t = setup({ disk: testDisk(sync) });
  const dir = tempDir();
  const listening = await listen(t.app, {
    ...{ host: "127.0.0.1", port: 0, socket: dir.file("s"), tokens: null, tls: null },
    ...{ maxRequests: 100, anonymous: false, durable: () => t.store.durable() },
  });
  return {
    folder: t.folder,
    url: `${listening.url}/v1`,
    async [Symbol.asyncDispose]() {
      await listening.stop();
      await t[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}

test("P1: whatever an answer tells, submitted, running or over, is on the disk before it leaves", async () => {
  using copies = tempDir();
  const random = randomFrom(20261122);
  let [begun, onDisk] = [0, 0];
  let folder = "";
  await using t = await service((_fd, done) => {
    const copy = ++begun;
    // What is there when a sync begins is what the disk has when it is over; more may get lost.
    cpSync(folder, copies.file(`${copy}`), { recursive: true });
    setTimeout(
      () => {
        onDisk = copy;
        done(null);
      },
      Math.floor(random() * 5),
    );
  });
  folder = t.folder;
  const told: { id: string; state: string; attempt: number; copy: number }[] = [];
  const tell = async (response: Response) => {
    const { id, state, attempt } = (await response.json()) as (typeof told)[number];
    told.push({ id, state, attempt, copy: onDisk });
    return id;
  };
  const client = async () => {
    for (let job = 0; job < JOBS_EACH; job++) {
      const body = JSON.stringify(ECHO);
      const id = await tell(
        await fetch(`${t.url}/rollouts`, { method: "POST", headers: JSON_TYPE, body }),
      );
      await tell(await fetch(`${t.url}/rollouts/${id}`));
      await tell(await fetch(`${t.url}/rollouts/${id}?wait_ms=10000`));
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  expect(told.filter(({ state }) => state === "succeeded").length).toBeGreaterThanOrEqual(48);
  for (const copy of new Set(told.map((one) => one.copy))) {
    using after = new Store(copies.file(`${copy}`));
    const known = told.filter((one) => one.copy === copy);
    for (const { id, state, attempt } of known) {
      const row = after.jobById(id);
      const is = [id, row?.attempt, state === "succeeded" ? row?.state : "told before its end"];
      expect(is).toEqual([id, attempt, state === "succeeded" ? state : "told before its end"]);
    }
  }
});

test("a stream of events tells of no end that the disk does not have", async () => {
  let held = false;
  const answers: (() => void)[] = [];
  await using t = await service((_fd, done) => {
    if (held) answers.push(() => done(null));
    else setImmediate(() => done(null));
  });
  const gone = new AbortController();
  const stream = await fetch(`${t.url}/events?after=0`, { signal: gone.signal });
  const reader = stream.body?.getReader();
  await reader?.read();
  held = true;
  const submitted = fetch(`${t.url}/rollouts?wait_ms=10000`, {
    ...{
      method: "POST",
      headers: JSON_TYPE,
      body: JSON.stringify(ECHO),
    },
  });
  let heard = "";
  const next = reader?.read().then(({ value }) => {
    heard = Buffer.from(value ?? []).toString();
  });
  while (answers.length === 0) await new Promise((resolve) => setImmediate(resolve));
  // Its other commits come while the first is on its way.
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(heard).toBe("");
  held = false;
  for (const answer of answers) answer();
  await next;
  expect(heard).toContain("event: finished");
  expect(((await (await submitted).json()) as { state: string }).state).toBe("succeeded");
  gone.abort();
});

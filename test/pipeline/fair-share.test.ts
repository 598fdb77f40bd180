import { describe, expect, test } from "bun:test";
import { createJob } from "../../src/jobs/job.ts";
import { PRIORITY_STEP_MS } from "../../src/jobs/queue-key.ts";
import { transition } from "../../src/jobs/transitions.ts";
import { FairShare } from "../../src/pipeline/fair-share.ts";
import type { ActiveJob } from "../../src/pipeline/parts.ts";
import type { NewRow } from "../../src/store/new-jobs.ts";
import { toJob } from "../../src/store/rows.ts";
import { Store } from "../../src/store/store.ts";
import { LIMITS, ROW, STARTED } from "../support/jobs.ts";
import { tempDir } from "../support/temp-dir.ts";

function setup() {
  const dir = tempDir();
  const store = new Store(dir.path);
  const share = new FairShare();
  const active = new Map<string, ActiveJob>();
  return {
    put(id: string, row: Partial<NewRow> = {}, createdMs = 1000) {
      const job = createJob(
        { id, limits: LIMITS, numAttempts: 1, evalFromRecord: true },
        createdMs,
      );
      store.insertJob(job, { ...ROW, ...row });
    },
    /** Claims as the scheduler does: what is claimed stays at work. */
    claim(limit: number): string[] {
      const stage = "init" as const;
      const filter = { stage, limit, sandbox: true, backend: true, barred: [] };
      return share.candidates(store.queue, active, filter).map((row) => {
        const waiting = toJob(row);
        const job = transition(waiting, STARTED, 2000);
        store.updateJob(row.seq, waiting, job);
        active.set(row.id, { seq: row.seq, client: row.client, job } as ActiveJob);
        return row.id;
      });
    },
    end: (id: string) => active.delete(id),
    [Symbol.dispose]() {
      store[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

describe("within a client", () => {
  test("priority goes first, then age", () => {
    using t = setup();
    t.put("old");
    t.put("new", {}, 2000);
    t.put("urgent", { priority: 1 }, 3000);
    t.put("idle", { priority: -1 }, 900);
    expect(t.claim(9)).toEqual(["urgent", "old", "new", "idle"]);
  });

  test("urgent work delays other work by a bounded time", () => {
    using t = setup();
    t.put("old");
    for (let minute = 0; minute < 5; minute++) {
      t.put(`urgent ${minute}`, { priority: 2 }, 1500 + minute * PRIORITY_STEP_MS);
    }
    expect(t.claim(4)).toEqual(["urgent 0", "urgent 1", "old", "urgent 2"]);
  });
});

describe("between clients", () => {
  test("who has the fewest jobs at work goes first, however many another one has waiting", () => {
    using t = setup();
    for (let i = 0; i < 20; i++) t.put(`a${i}`, { client: "a", priority: 100 });
    expect(t.claim(4)).toEqual(["a0", "a1", "a2", "a3"]);
    for (let i = 0; i < 3; i++) t.put(`b${i}`, { client: "b" });
    t.put("c0", { client: "c" });
    expect(t.claim(3)).toEqual(["b0", "c0", "b1"]);
    // What nobody else wants is for who has more.
    expect(t.claim(4)).toEqual(["b2", "a4", "a5", "a6"]);
  });

  test("equals take turns, so that no name is last for good", () => {
    using t = setup();
    const served: string[] = [];
    for (const client of ["a", "b", "c"]) {
      for (let i = 0; i < 4; i++) t.put(`${client}${i}`, { client });
    }
    for (let slot = 0; slot < 6; slot++) {
      const [id = ""] = t.claim(1);
      served.push(id);
      t.end(id);
    }
    expect(served).toEqual(["a0", "b0", "c0", "a1", "b1", "c1"]);
  });

  test("a thousand clients are served one after the other", () => {
    using t = setup();
    for (let i = 0; i < 1000; i++) t.put(`j${i}`, { client: `c${i}` });
    const served = new Set<string>();
    for (let round = 0; round < 20; round++) {
      for (const id of t.claim(50)) {
        served.add(id);
        t.end(id);
      }
    }
    expect(served.size).toBe(1000);
  });
});

import { expect, test } from "bun:test";
import { cpSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Store } from "../../src/store/store.ts";
import { storeJob } from "../support/jobs.ts";
import { randomFrom } from "../support/random.ts";
import { tempDir } from "../support/temp-dir.ts";

const COMMITS = 40;
const TEARS = 24;

test("P1: a log whose end is torn or garbled costs the commits behind the tear, and none before it", () => {
  using dir = tempDir();
  const log = (folder: string) => join(folder, "rolloutd.db-wal");
  const [live, lost] = [dir.file("live"), dir.file("lost")];
  const store = new Store(live);
  /** How long the log was after each commit. */
  const ends = Array.from({ length: COMMITS }, (_, index) => {
    storeJob(store, `job-${index}`, []);
    return statSync(log(live)).size;
  });
  // What a disk has when the power goes: the service closes nothing.
  cpSync(live, lost, { recursive: true });
  store[Symbol.dispose]();
  const random = randomFrom(20261121);
  const [first = 0, size = 0] = [ends[0], ends.at(-1)];
  for (let tear = 0; tear < TEARS; tear++) {
    const folder = dir.file(`torn-${tear}`);
    cpSync(lost, folder, { recursive: true });
    const bytes = readFileSync(log(folder));
    const at = first + Math.floor(random() * (size - first));
    const garbled = () => bytes.fill(0xa5, at, at + 700);
    writeFileSync(log(folder), tear % 2 === 0 ? bytes.subarray(0, at) : garbled());
    using reopened = new Store(folder);
    const { rows } = reopened.list({ after: 0, limit: 1000, order: "submitted" });
    const whole = ends.filter((end) => end <= at).length;
    expect([tear, rows.map(({ id }) => id)]).toEqual([
      tear,
      Array.from({ length: whole }, (_, index) => `job-${index}`),
    ]);
  }
});

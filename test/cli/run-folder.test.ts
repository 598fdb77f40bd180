import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { RunFolder, removeLeftFolders } from "../../src/cli/run-folder.ts";
import { FileLock } from "../../src/lib/file-lock.ts";
import { tempDir } from "../support/temp-dir.ts";

/** A number that no process has any more. */
async function deadPid(): Promise<number> {
  const child = Bun.spawn(["true"]);
  await child.exited;
  return child.pid;
}

/** The folder that a run with this number has left. */
function leave(root: string, pid: number, mark: string, files = ["run.lock", "jobs.sqlite"]) {
  const folder = `${root}/rolloutd-run-${pid}-${mark}`;
  mkdirSync(folder);
  for (const file of files) writeFileSync(`${folder}/${file}`, "");
  return folder;
}

test("a run's folder goes away with it", async () => {
  using root = tempDir();
  {
    using folder = new RunFolder(root.path);
    await removeLeftFolders(root.path);
    expect(existsSync(folder.path)).toBe(true);
  }
  expect(readdirSync(root.path)).toEqual([]);
});

test("of the folders that others left only those go whose runs are certainly over", async () => {
  using root = tempDir();
  const pid = await deadPid();
  const killed = leave(root.path, pid, "killed");
  const locked = leave(root.path, pid, "locked");
  const stays = [
    locked,
    leave(root.path, process.pid, "alive"),
    leave(root.path, pid, "unknown", ["jobs.sqlite"]),
  ];
  using held = new FileLock(`${locked}/run.lock`);
  expect(held.tryExclusive()).toBe(true);
  mkdirSync(root.file("rolloutd-500"));
  await removeLeftFolders(root.path);
  expect([existsSync(killed), ...stays.map((folder) => existsSync(folder))]).toEqual([
    false,
    true,
    true,
    true,
  ]);
  expect(existsSync(root.file("rolloutd-500"))).toBe(true);
});

import { expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { DiskRoom } from "../../src/store/disk-room.ts";
import { tempDir } from "../support/temp-dir.ts";

const MB = 1024 * 1024;

test("below the floor no new work is taken; the ballast goes when an end would have no room", () => {
  using dir = tempDir();
  const disk = { free: 100 * MB };
  const states: string[] = [];
  const ballast = dir.file("ballast");
  // What the ballast takes of the disk, as a small disk would show it.
  const free = () => disk.free - (existsSync(ballast) ? statSync(ballast).size : 0);
  const limits = { floorBytes: 20 * MB, ballastBytes: 8 * MB };
  using room = new DiskRoom(dir.path, limits, (state) => states.push(state), free, 0);
  expect([room.forWork(), room.forTick(0), existsSync(ballast)]).toEqual([true, true, true]);
  disk.free = 20 * MB;
  expect([room.forWork(), room.forTick(0), existsSync(ballast)]).toEqual([false, true, true]);
  disk.free = 10 * MB;
  expect([room.forTick(0), existsSync(ballast)]).toEqual([true, false]);
  disk.free = 5 * MB;
  expect([room.forTick(0), room.forTick(2 * MB)]).toEqual([true, false]);
  expect(states).toEqual(["ballast_taken", "ballast_dropped"]);
});

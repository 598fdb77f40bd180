import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { delegatedCgroup } from "../../src/sandbox/cgroup.ts";
import { tempDir } from "../support/temp-dir.ts";

/** A folder that looks like the cgroup tree of a service. */
function setup(changes: { controllers?: string; procs?: string; own?: string } = {}) {
  const dir = tempDir();
  const own = dir.file("tree/job/service");
  mkdirSync(own, { recursive: true });
  writeFileSync(`${own}/cgroup.controllers`, changes.controllers ?? "cpu memory pids\n");
  writeFileSync(`${own}/cgroup.procs`, changes.procs ?? "123\n");
  writeFileSync(`${own}/cgroup.subtree_control`, "");
  const mount = `30 29 0:26 / ${dir.file("tree")} rw,nosuid - cgroup2 cgroup rw`;
  writeFileSync(dir.file("mountinfo"), `29 1 8:1 / / rw - ext4 /dev/sda1 rw\n${mount}\n`);
  writeFileSync(dir.file("cgroup"), changes.own ?? "4:memory:/old\n0::/job/service\n");
  const files = { mountinfo: dir.file("mountinfo"), cgroup: dir.file("cgroup") };
  return { own, files, [Symbol.dispose]: dir[Symbol.dispose] };
}

describe("the service's own cgroup", () => {
  test("is found where limits may be set below it", () => {
    using t = setup();
    expect(delegatedCgroup(t.files)).toEqual({ path: t.own });
  });

  test.each([
    ["has no memory and no pids controller", { controllers: "hugetlb\n" }],
    ["has no pids controller", { controllers: "memory cpu\n" }],
    ["has other processes", { procs: "123\n124\n" }],
    ["no cgroup v2", { own: "4:memory:/old\n" }],
    ["no memory and no pids", { own: "0::/another\n" }],
  ])("is not used where it %s", (why, changes) => {
    using t = setup(changes);
    expect(delegatedCgroup(t.files)).toEqual({ why: expect.stringContaining(why) });
  });

  test("is not used where the node has none", () => {
    const nowhere = { mountinfo: "/no/such", cgroup: "/no/such" };
    expect(delegatedCgroup(nowhere)).toEqual({ why: "no cgroup v2 is mounted" });
  });
});

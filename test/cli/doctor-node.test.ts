import { describe, expect, test } from "bun:test";
import {
  container,
  fuse,
  type Node,
  networkNamespaces,
  noexec,
  overlay,
  userNamespaces,
} from "../../src/cli/doctor-node.ts";

/** A node that gives everything, but for `files` and `changes`. */
function node(files: Record<string, string> = {}, changes: Partial<Node> = {}): Node {
  const all: Record<string, string> = {
    "/proc/sys/user/max_user_namespaces": "100",
    "/proc/sys/user/max_net_namespaces": "100",
    "/proc/self/uid_map": "         0          0 4294967295",
    "/proc/self/mountinfo": "1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw",
    ...files,
  };
  return {
    read: (path) => all[path] ?? null,
    exists: (path) => path in all,
    canOpen: () => true,
    has: () => true,
    env: {},
    whyNoStage: null,
    whyNoSifMount: null,
    ...changes,
  };
}

describe("doctor finds", () => {
  test("nothing wrong with a node that gives everything", () => {
    const whole = node();
    const found = [
      userNamespaces(whole),
      networkNamespaces(whole, { min_isolation: "A" }),
      overlay(whole, { driver: "bubblewrap" }),
      fuse(whole, { image_mount_bytes: undefined }),
      container(whole),
      noexec(whole, "/var/tmp/data"),
    ];
    expect(found.map(({ status }) => status)).toEqual(["ok", "ok", "ok", "ok", "ok", "ok"]);
  });

  test("namespaces that are switched off, and whether that keeps the service from working", () => {
    const without = node({
      "/proc/sys/user/max_user_namespaces": "0",
      "/proc/sys/user/max_net_namespaces": "0",
    });
    expect(userNamespaces(without)).toMatchObject({ status: "missing", mend: expect.any(String) });
    expect(networkNamespaces(without, { min_isolation: "A" }).status).toBe("missing");
    const lower = networkNamespaces(without, { min_isolation: "B" });
    expect(lower).toMatchObject({ status: "note", detail: expect.stringContaining("isolation B") });
  });

  test("a kernel without overlays for users: bubblewrap needs one, Apptainer has a way of its own", () => {
    const old = node({}, { whyNoStage: "stage: an overlay failed with errno 1" });
    expect(overlay(old, { driver: "bubblewrap" }).status).toBe("missing");
    const slow = overlay(old, { driver: "apptainer" });
    expect(slow).toMatchObject({ status: "note", mend: expect.stringContaining("Linux 5.11") });
    expect(slow.detail).toContain("by fuse-overlayfs, slowly");
    const none = overlay({ ...old, canOpen: () => false }, { driver: "apptainer" });
    expect(none.detail).toContain("errno 1");
    expect(none.detail).not.toContain("fuse-overlayfs");
  });

  test("that SIFs can't be mounted, and whether a setting needs it", () => {
    const closed = node({}, { whyNoSifMount: "/dev/fuse can't be opened" });
    const { status, detail } = fuse(closed, { image_mount_bytes: undefined });
    expect([status, detail]).toEqual(["ok", expect.stringContaining("unpacked once")]);
    expect(detail).toContain("/dev/fuse can't be opened");
    const needed = fuse(closed, { image_mount_bytes: 0 });
    expect(needed).toMatchObject({
      status: "missing",
      mend: expect.stringContaining("squashfuse"),
    });
  });

  test.each([
    ["Apptainer", node({}, { env: { APPTAINER_CONTAINER: "/x.sif" } })],
    ["enroot or pyxis", node({}, { env: { SLURM_CONTAINER_IMAGE: "x" } })],
    ["Podman", node({ "/run/.containerenv": "" })],
    ["Docker", node({ "/.dockerenv": "" })],
    ["a user namespace", node({ "/proc/self/uid_map": "0 1000 1" })],
  ])("that it runs inside %s", (name, inside) => {
    const { status, detail } = container(inside);
    expect([status, detail]).toEqual(["note", expect.stringContaining(`inside ${name}:`)]);
  });

  test("a data folder from which no program may be run, by the mount that it lies on", () => {
    const mountinfo = `1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw
2 1 8:2 / /scratch rw,nosuid,noexec - xfs /dev/sda2 rw
3 2 8:3 / /scratch/good rw - xfs /dev/sda3 rw`;
    const mounted = node({ "/proc/self/mountinfo": mountinfo });
    expect(noexec(mounted, "/scratch/me/data")).toMatchObject({
      status: "missing",
      detail: "/scratch is mounted noexec",
    });
    expect(noexec(mounted, "/scratch/good/data").status).toBe("ok");
    expect(noexec(mounted, "/var/tmp").status).toBe("ok");
  });
});

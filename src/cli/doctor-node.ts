import { constants, existsSync, readFileSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import type { Config } from "../config/settings.ts";
import { isAccessible } from "../lib/is-accessible.ts";
import { nodeMemory } from "../lib/memory.ts";
import { makePrivateFolder } from "../lib/private-folder.ts";
import { delegatedCgroup } from "../sandbox/cgroup.ts";
import { descriptors } from "./descriptors.ts";
import type { Finding } from "./finding.ts";

const GIB = 1024 ** 3;

/** What a node shows of itself; tests make one up. */
export type Node = {
  read(path: string): string | null;
  exists(path: string): boolean;
  /** For reading and writing. */
  canOpen(path: string): boolean;
  has(program: string): boolean;
  env: Record<string, string | undefined>;
} & Tried;

/** What only a try shows. */
export type Tried = {
  /** Why no root file system can be laid ready by us; null where it can. */
  whyNoStage: string | null;
  /** Why no SIF can be mounted; null where it can. */
  whyNoSifMount: string | null;
};

export function thisNode(tried: Tried): Node {
  return {
    read: (path) => (existsSync(path) ? readFileSync(path, "utf8").trim() : null),
    exists: existsSync,
    canOpen: (path) => isAccessible(path, constants.R_OK | constants.W_OK),
    has: (program) => Bun.which(program) !== null,
    env: process.env,
    ...tried,
  };
}

/** What decides how sandboxes are made on this node: what is there, which way is taken, and how to better it. */
export function examineNode(node: Node, config: Config): Finding[] {
  return [
    userNamespaces(node),
    networkNamespaces(node, config),
    appArmor(node),
    overlay(node, config),
    fuse(node, config),
    container(node),
    cgroups(),
    imageCache(config.image_cache),
    noexec(node, config.data_dir),
    memory(config),
    descriptors(config, node.read("/proc/self/limits") ?? ""),
  ];
}

export function userNamespaces(node: Node): Finding {
  const check = "user namespaces";
  const limit = namespaceLimit(node, "user");
  if (limit > 0) return { check, status: "ok", detail: `up to ${limit}` };
  const mend = "sysctl -w user.max_user_namespaces=10000, by an administrator";
  return { check, status: "missing", detail: "switched off on this node", mend };
}

export function networkNamespaces(node: Node, config: Pick<Config, "min_isolation">): Finding {
  const check = "net namespaces";
  const limit = namespaceLimit(node, "net");
  if (limit > 0) return { check, status: "ok", detail: `up to ${limit}` };
  const status = config.min_isolation === "A" ? "missing" : "note";
  const detail =
    "switched off on this node: isolation B, where sandboxes have no IP sockets at all";
  const mend = "sysctl -w user.max_net_namespaces=10000, by an administrator";
  return { check, status, detail, mend };
}

function namespaceLimit(node: Node, kind: "user" | "net"): number {
  return Number(node.read(`/proc/sys/user/max_${kind}_namespaces`) ?? 0);
}

function appArmor(node: Node): Finding {
  const check = "AppArmor";
  if (node.read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") !== "1") {
    return { check, status: "ok", detail: "does not restrict user namespaces" };
  }
  return {
    check,
    status: "note",
    detail: "restricts user namespaces to programs with a profile",
    mend: "install Apptainer from its package, which brings a profile",
  };
}

export function overlay(node: Node, config: Pick<Config, "driver">): Finding {
  const check = "overlay";
  const { whyNoStage } = node;
  if (whyNoStage === null) {
    const detail = "mounted by the kernel in user namespaces: each root is laid ready by us";
    return { check, status: "ok", detail };
  }
  const mend = "Linux 5.11 or newer, user namespaces, and data_dir and image_cache on a local disk";
  if (config.driver === "bubblewrap") {
    return { check, status: "missing", detail: `not in user namespaces (${whyNoStage})`, mend };
  }
  const helper = node.has("fuse-overlayfs") && node.canOpen("/dev/fuse");
  const way = helper ? "by fuse-overlayfs, slowly" : "if it can";
  const detail = `not in user namespaces (${whyNoStage}): Apptainer makes its own layer, ${way}; folders of an image can't be moved or removed`;
  return { check, status: "note", detail, mend };
}

export function fuse(node: Node, config: Pick<Config, "image_mount_bytes">): Finding {
  const check = "mounting SIFs";
  const { whyNoSifMount: why } = node;
  if (why === null) {
    const detail = "possible, for those larger than image_mount_bytes; the others are unpacked";
    return { check, status: "ok", detail };
  }
  const detail = `not possible (${why}): images are unpacked once per node, which is faster to use`;
  if (config.image_mount_bytes === undefined) return { check, status: "ok", detail };
  const mend =
    "install squashfuse 0.5 and let users open /dev/fuse (mode 666), or leave image_mount_bytes out";
  return { check, status: "missing", detail, mend };
}

export function container(node: Node): Finding {
  const check = "container";
  const { env } = node;
  const whole = /^\s*0\s+0\s+4294967295\s*$/.test(node.read("/proc/self/uid_map") ?? "");
  const signs: [string, unknown][] = [
    ["Apptainer", env.APPTAINER_CONTAINER ?? env.SINGULARITY_CONTAINER],
    ["enroot or pyxis", env.ENROOT_ROOTFS ?? env.PYXIS_RUNTIME_PATH ?? env.SLURM_CONTAINER_IMAGE],
    ["Podman", node.exists("/run/.containerenv")],
    ["Docker", node.exists("/.dockerenv")],
    ["a user namespace", !whole],
  ];
  const inside = signs.find(([, sign]) => sign)?.[0];
  if (inside === undefined) return { check, status: "ok", detail: "we run in none" };
  const detail = `we run inside ${inside}: sandboxes nest in it, as far as it lets them`;
  const mend = "where the sandbox below does not start, run the service outside of it";
  return { check, status: "note", detail, mend };
}

function cgroups(): Finding {
  const check = "cgroups";
  const found = delegatedCgroup();
  if ("path" in found) {
    return { check, status: "ok", detail: `limits are kept by the kernel, below ${found.path}` };
  }
  const detail = `limits are kept by a watchdog, which needs no rights: of cgroups ${found.why}`;
  const mend = "systemd-run --user --scope -p Delegate=yes rolloutd serve …, for a wall";
  return { check, status: "ok", detail, mend };
}

function imageCache(path: string): Finding {
  const check = "image cache";
  const problem = makePrivateFolder(path);
  if (problem !== null) {
    const mend = problem.mend ?? "choose a folder on a local disk with --image-cache";
    return { check, status: "missing", detail: `${path} ${problem.why}`, mend };
  }
  const { bavail, bsize } = statfsSync(path);
  const gib = (bavail * bsize) / GIB;
  const detail = `${path}, ${gib.toFixed(1)} GiB free`;
  if (gib >= 10) return { check, status: "ok", detail };
  const mend = "an image may take gigabytes: choose a larger disk with --image-cache";
  return { check, status: "note", detail, mend };
}

/** What a sandbox runs first lies in the data folder. */
export function noexec(node: Node, dataDir: string): Finding {
  const check = "data folder runs";
  const mounts = (node.read("/proc/self/mountinfo") ?? "").split("\n").map((line) => {
    const [, , , , point = "", options = ""] = line.split(" ");
    return { point, options: options.split(",") };
  });
  for (let folder = dataDir; ; folder = dirname(folder)) {
    const mount = mounts.findLast(({ point }) => point === folder);
    if (mount?.options.includes("noexec")) {
      const mend = "choose another folder with --data-dir, on a disk without noexec";
      return { check, status: "missing", detail: `${mount.point} is mounted noexec`, mend };
    }
    if (mount || folder === dirname(folder)) {
      return { check, status: "ok", detail: "programs may be run from it" };
    }
  }
}

function memory(config: Config): Finding {
  const check = "memory";
  const available = nodeMemory().available;
  const each = config.sandbox_memory_bytes + config.sandbox_tmpfs_bytes;
  const gib = (bytes: number) => (bytes / GIB).toFixed(1);
  const detail = `${gib(available)} GiB available; one sandbox may use ${gib(each)}`;
  if (available >= each) return { check, status: "ok", detail };
  const mend = "lower sandbox_memory_bytes and sandbox_tmpfs_bytes, or run_slots";
  return { check, status: "note", detail, mend };
}

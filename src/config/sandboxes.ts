import { z } from "zod";
import { bytes, cores, count, flag, folder, ms, path, setting, whole } from "./setting.ts";

/** Images and sandboxes. */
export const SANDBOX_SETTINGS = {
  image: setting(path, undefined, "image for rollouts that name none (see `rolloutd images`)"),
  image_cache: setting(
    folder,
    `/var/tmp/rolloutd-images-${process.getuid?.() ?? 0}`,
    "folder of unpacked images, shared by the services of a node, on a local disk",
  ),
  image_cache_bytes: setting(bytes, 100 * 1024 ** 3, "size above which unused images are removed"),
  image_mount_bytes: setting(
    bytes,
    undefined,
    "size above which a SIF is mounted and not unpacked (slow); by default image_cache_bytes where the node can mount",
  ),
  apptainer: setting(path, undefined, "the Apptainer or Singularity program; by default on PATH"),
  bwrap: setting(path, undefined, "the bubblewrap program; by default on PATH"),
  driver: setting(
    z.enum(["apptainer", "bubblewrap", "none", "host"]),
    "apptainer",
    "how sandboxes are made; with none, rollouts that need one are refused",
  ),
  min_isolation: setting(
    z.enum(["A", "B"]),
    "B",
    "A refuses sandboxes where the node gives no network namespace; with B they have no IP sockets",
  ),
  allow_host_driver: setting(flag, false, "permit driver=host, which isolates nothing: tests only"),
  warm_sandboxes: setting(
    whole(0),
    Math.min(4, cores),
    "unused sandboxes kept ready for images in demand; 0 keeps none",
  ),
  sandbox_writable: setting(
    z.enum(["tmpfs", "overlay"]),
    "tmpfs",
    "writable layer: RAM of a bounded size, or a folder in data_dir",
  ),
  sandbox_start_ms: setting(ms, 60_000, "time limit of one sandbox start, attempts included"),
  sandbox_start_attempts: setting(count, 3, "attempts of a start that fails for a passing reason"),
  sandbox_processes: setting(count, 512, "processes in one sandbox"),
  sandbox_open_files: setting(count, 4096, "open files of one process in a sandbox"),
  sandbox_file_bytes: setting(bytes, 2_000_000_000, "size of one file in a sandbox"),
  sandbox_tmpfs_bytes: setting(
    bytes,
    1024 ** 3,
    "size of a sandbox's RAM layer, /tmp and /dev/shm",
  ),
  sandbox_memory_bytes: setting(bytes, 4 * 1024 ** 3, "memory of a sandbox's processes together"),
  sandbox_disk_bytes: setting(bytes, 16 * 1024 ** 3, "what a sandbox may write to the disk"),
} as const;

import { bytes, flag, folder, setting, whole } from "./setting.ts";

/** The data folder, and how long it keeps what. */
export const DATA_SETTINGS = {
  data_dir: setting(
    folder,
    `/var/tmp/rolloutd-${process.getuid?.() ?? 0}`,
    "folder of the database and the sandboxes, on a local disk",
  ),
  disk_floor_bytes: setting(
    bytes,
    256 * 1024 ** 2,
    "free space below which new rollouts are refused with 507",
  ),
  disk_ballast_bytes: setting(
    bytes,
    16 * 1024 ** 2,
    "file that is given up on a full disk, so that running rollouts can still end",
  ),
  retention_ms: setting(whole(1), 30 * 86_400_000, "how long a finished rollout is kept"),
  retention_bytes: setting(
    bytes,
    64 * 1024 ** 3,
    "size of the database above which the oldest finished rollouts go",
  ),
  recover: setting(flag, false, "set a damaged database aside and begin an empty one"),
} as const;

import type { Config } from "../config/settings.ts";
import { ServiceError } from "../errors.ts";
import type { WorkerSettings } from "../pipeline/messages.ts";
import type { ImageSettings } from "../sandbox/images/images.ts";
import { whyNoSifMount } from "../sandbox/sif-mount.ts";
import { imageArgument } from "./image-argument.ts";
import { taskSettings } from "./task-settings.ts";

/** What threads are given of the settings. @throws ServiceError `invalid_field` for settings that can't be. */
export function workerSettings(config: Config): WorkerSettings {
  return {
    driver: config.driver,
    apptainer: findApptainer(config.apptainer),
    bwrap: config.bwrap ?? "bwrap",
    minIsolation: config.min_isolation,
    startAttempts: config.sandbox_start_attempts,
    cgroups: null,
    dataDir: config.data_dir,
    defaultImage: config.image === undefined ? null : imageArgument(config.image, "image"),
    images: imageSettings(config),
    sandbox: {
      writable: config.sandbox_writable,
      startTimeoutMs: config.sandbox_start_ms,
      processes: config.sandbox_processes,
      openFiles: config.sandbox_open_files,
      fileBytes: config.sandbox_file_bytes,
      tmpfsBytes: config.sandbox_tmpfs_bytes,
      memoryBytes: config.sandbox_memory_bytes,
      diskBytes: config.sandbox_disk_bytes,
    },
    engineCallTimeoutMs: config.engine_call_ms,
    engineStallMs: config.engine_stall_ms,
    maxReplyBytes: config.max_reply_bytes,
    maxOutcomeBytes: config.max_outcome_bytes,
    tasks: taskSettings(config),
  };
}

export function imageSettings(config: Config): ImageSettings {
  if (config.image_mount_bytes !== undefined && ["host", "none"].includes(config.driver)) {
    const message = `driver=${config.driver} mounts no SIF`;
    const mend = "leave image_mount_bytes out, or use another driver";
    throw new ServiceError("invalid_field", message, { field: "image_mount_bytes", mend });
  }
  const apptainer = findApptainer(config.apptainer);
  const canMount = !["host", "none"].includes(config.driver) && whyNoSifMount(apptainer) === null;
  return {
    cacheDir: config.image_cache,
    maxBytes: config.image_cache_bytes,
    mountAboveBytes: config.image_mount_bytes ?? (canMount ? config.image_cache_bytes : null),
    apptainer,
  };
}

/** The program that was named, or what PATH has; a name that is not there fails the jobs that need it. */
export function findApptainer(named: string | undefined): string {
  return named ?? Bun.which("apptainer") ?? Bun.which("singularity") ?? "apptainer";
}

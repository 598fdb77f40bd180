import type { Config } from "../config/settings.ts";
import type { Idle } from "./flags.ts";

/**
 * Settings that a command line gives and that do nothing beside its others. Variables and the file are not meant: they
 * hold for every service of a node.
 */
export function idleSettings(config: Config): Idle[] {
  const { driver, backend, judge_url, search_url, token_file } = config;
  const isolated = driver === "apptainer" || driver === "bubblewrap";
  return [
    {
      flags: ["bwrap"],
      when: driver !== "bubblewrap",
      why: `is for --driver bubblewrap, and the driver is ${driver}`,
    },
    { flags: ["apptainer"], when: !isolated, why: `has no effect with --driver ${driver}` },
    {
      flags: [
        ...["min-isolation", "warm-sandboxes", "sandbox-writable", "image-mount-bytes"],
        ...["sandbox-processes", "sandbox-open-files", "sandbox-file-bytes", "sandbox-disk-bytes"],
        ...["sandbox-tmpfs-bytes", "sandbox-memory-bytes", "sandbox-start-ms"],
        ...["sandbox-start-attempts", "starts-at-once", "image-cache-bytes", "images-at-once"],
      ],
      when: driver === "none",
      why: "has no effect with --driver none, which makes no sandboxes",
    },
    { flags: ["min-isolation"], when: driver === "host", why: "is not kept by --driver host" },
    { flags: ["engine"], when: backend === undefined, why: "has no effect without --backend" },
    {
      flags: ["judge-ms", "judge-max-tokens"],
      when: judge_url === undefined,
      why: "has no effect without --judge-url",
    },
    {
      flags: ["search-ms"],
      when: search_url === undefined,
      why: "has no effect without --search-url",
    },
    {
      flags: ["allow-anonymous"],
      when: token_file !== undefined,
      why: "does not go with --token-file: leave one of them out",
    },
  ];
}

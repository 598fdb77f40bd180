import { dirname, join } from "node:path";
import { ServiceError } from "../../errors.ts";
import type { FileLock } from "../../lib/file-lock.ts";
import { whyNotExecutable } from "../../lib/why-not-executable.ts";
import { findProgram } from "../programs.ts";
import { sifRootOffset } from "./sif.ts";
import type { Source } from "./source.ts";
import { runTool, type ToolResult } from "./tool.ts";

export type UnpackOptions = {
  /** For messages: as the job or the user named it. */
  image: string;
  /** Empty, and ours; the result is `rootfs` in it. */
  folder: string;
  /** The Apptainer or Singularity program, by path or name. */
  apptainer: string;
  lock: FileLock;
  signal: AbortSignal;
};

type Tool = { argv: string[]; env?: Record<string, string> };

const DISK_FULL = /No space left on device|Disk quota exceeded|File too large|ENOSPC|EDQUOT|EFBIG/i;
const NO_PROGRAM = /([\w-]+): (?:not found|Cannot exec: No such file|command not found)/;
/** Nobody but the node's administrator makes devices, and a sandbox has its own. */
const DEVICE = /Cannot mknod|could not create (character|block) device|not superuser/;
const EPILOGUE = /Exiting with failure status due to previous errors|^\s*$/;
const NOT_THERE =
  /manifest unknown|name unknown|unauthorized|authentication required|denied|not found|status 40[134]|image not known/i;

/** Proxies, credentials and certificates; the rest of our environment would change what is built. */
const REGISTRY_VARIABLES =
  /^((https?|no|all)_proxy|(APPTAINER|SINGULARITY)_DOCKER_\w+|DOCKER_CONFIG|SSL_CERT_\w+|HOME)$/i;

/**
 * Writes the files of `source` to `folder/rootfs`, as they come: call `normaliseTree` next.
 * @throws ServiceError `image_invalid`, `image_not_found`, `image_unreachable`, `disk_full`,
 * `sandbox_unavailable` for a program that is missing, or the reason of the signal.
 */
export async function unpack(source: Source, options: UnpackOptions): Promise<void> {
  const { folder, lock, signal } = options;
  const { argv, env = {} } = await toolFor(source, options);
  const result = await runTool(argv, { cwd: folder, env, lock, signal });
  if (result.exitCode === 0 || onlyDevicesMissing(source, result)) return;
  throw explain(source, options.image, argv, result);
}

async function toolFor(source: Source, { folder, apptainer }: UnpackOptions): Promise<Tool> {
  const rootfs = join(folder, "rootfs");
  switch (source.kind) {
    case "sif": {
      const offset = await sifRootOffset(source.location);
      const program = findUnsquashfs(apptainer);
      if (program === null) return build(apptainer, folder, source.location);
      const flags = ["-no-progress", "-quiet", "-no-xattrs", "-o", `${offset}`, "-d", rootfs];
      return { argv: [program, ...flags, source.location] };
    }
    case "tar": {
      const flags = ["--no-same-owner", "--preserve-permissions", "--delay-directory-restore"];
      return {
        argv: ["tar", "-xf", source.location, ...flags, "--one-top-level=rootfs"],
      };
    }
    case "folder":
      return { argv: ["cp", "-a", "--reflink=auto", "--", source.location, rootfs] };
    case "docker-archive":
    case "oci-archive":
      return build(apptainer, folder, `${source.kind}:${source.location}`);
    case "registry":
      return build(apptainer, folder, source.location);
  }
}

const MEND = "Install Apptainer, or name it with --apptainer.";

function build(apptainer: string, folder: string, from: string): Tool {
  const given = Object.entries(process.env).filter(([name]) => REGISTRY_VARIABLES.test(name));
  const own = Object.fromEntries(
    ["APPTAINER", "SINGULARITY"].flatMap((name) => [
      [`${name}_TMPDIR`, folder],
      [`${name}_CACHEDIR`, join(folder, "cache")],
    ]),
  );
  return {
    argv: [
      findProgram({ name: apptainer, mend: MEND }),
      "build",
      "--disable-cache",
      "--sandbox",
      join(folder, "rootfs"),
      from,
    ],
    env: { HOME: folder, ...(Object.fromEntries(given) as Record<string, string>), ...own },
  };
}

/** Apptainer brings its own, which knows what Apptainer writes. */
function findUnsquashfs(apptainer: string): string | null {
  const program = Bun.which(apptainer);
  const beside = program === null ? null : join(dirname(program), "unsquashfs");
  const found = [beside, Bun.which("unsquashfs")].filter((path) => path !== null);
  return found.find((path) => whyNotExecutable(path) === null) ?? null;
}

function onlyDevicesMissing({ kind }: Source, { exitCode, output }: ToolResult): boolean {
  if (!["sif", "tar", "folder"].includes(kind) || exitCode > 2) return false;
  const lines = output.split("\n").filter((line) => !EPILOGUE.test(line));
  return lines.length > 0 && lines.every((line) => DEVICE.test(line));
}

function explain(source: Source, image: string, argv: string[], result: ToolResult): ServiceError {
  const { output, exitCode } = result;
  const said = lastWords(output) || `${argv[0]} ended with ${exitCode}`;
  if (DISK_FULL.test(output)) return diskFull(image, said);
  const missing = NO_PROGRAM.exec(output)?.[1];
  if (missing) {
    const what = `the image ${image} needs ${missing}, which this node lacks`;
    return new ServiceError("sandbox_unavailable", what, { mend: `install ${missing}` });
  }
  if (source.kind === "registry") return explainRegistry(image, output, said);
  const mend =
    source.kind === "tar" ? { mend: "an archive of docker save is docker-archive:PATH" } : {};
  return new ServiceError("image_invalid", `the image ${image} can't be unpacked: ${said}`, mend);
}

function explainRegistry(image: string, output: string, said: string): ServiceError {
  const unreachable = () => {
    const mend = `on a node without a way to the registry: \`apptainer pull image.sif ${image}\` elsewhere, and \`rolloutd images add image.sif\` here; task_images (KIND=REFERENCE with {field}) names images of your own for a kind's rows`;
    const message = `the image ${image} can't be fetched: ${said}`;
    return new ServiceError("image_unreachable", message, { mend });
  };
  if (/no such host|connection|timeout|dial tcp|TLS|EOF|status 5|429|toomany/i.test(output)) {
    return unreachable();
  }
  if (NOT_THERE.test(output)) {
    return new ServiceError("image_not_found", `the registry does not give ${image}: ${said}`, {
      mend: "correct the reference, or log in with `apptainer registry login`",
    });
  }
  if (/(parse|invalid) reference/i.test(output)) {
    return new ServiceError("image_invalid", `${image} is no reference: ${said}`);
  }
  return unreachable();
}

/** Retryable: room may be made. */
export function diskFull(image: string, said: string, cause?: unknown): ServiceError {
  return new ServiceError("disk_full", `no room to unpack the image ${image}: ${said}`, {
    mend: "make room, put the image cache elsewhere with image_cache, or mount large SIFs with image_mount_bytes",
    cause,
  });
}

/** The line that says why, without the program's own decoration. */
function lastWords(output: string): string {
  const lines = output.split("\n").filter((line) => !EPILOGUE.test(line));
  const why =
    lines.findLast((line) => /FATAL|ERROR|error|Cannot|failed/.test(line)) ?? lines.at(-1);
  const text = (why ?? "").replace(/^\S*\s*(FATAL|ERROR):?\s*/, "").trim();
  return text.length > 500 ? `${text.slice(0, 500)}…` : text;
}

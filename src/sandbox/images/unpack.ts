import { rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { ServiceError } from "../../errors.ts";
import type { FileLock } from "../../lib/file-lock.ts";
import { whyNotExecutable } from "../../lib/why-not-executable.ts";
import { findProgram } from "../programs.ts";
import { type Pulled, pullImage } from "./registry/pull.ts";
import type { Registry } from "./registry/registries.ts";
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
  /** Those that may be asked. */
  registries: readonly Registry[];
  /** Units: bytes. Of what a registry sends. */
  maxBytes: number;
  lock: FileLock;
  signal: AbortSignal;
};

/** Where files come from that are on the node. */
type Local = { kind: Exclude<Source["kind"], "registry"> | Pulled["kind"]; location: string };
type Tool = { argv: string[]; env?: Record<string, string> };

const DISK_FULL = /No space left on device|Disk quota exceeded|File too large|ENOSPC|EDQUOT|EFBIG/i;
const NO_PROGRAM = /([\w-]+): (?:not found|Cannot exec: No such file|command not found)/;
/** Nobody but the node's administrator makes devices, and a sandbox has its own. */
const DEVICE = /Cannot mknod|could not create (character|block) device|not superuser/;
const EPILOGUE = /Exiting with failure status due to previous errors|^\s*$/;
/**
 * Writes the files of `source` to `folder/rootfs`, as they come: call `normaliseTree` next.
 * @throws ServiceError `image_invalid`, `image_not_found`, `image_unreachable`, `disk_full`,
 * `sandbox_unavailable` for a program that is missing, or the reason of the signal.
 */
export async function unpack(source: Source, options: UnpackOptions): Promise<void> {
  const { folder, lock, signal } = options;
  const { kind, location } = source;
  const local = kind === "registry" ? await pulled(location, options) : { kind, location };
  const { argv, env = {} } = await toolFor(local, options);
  const result = await runTool(argv, { cwd: folder, env, lock, signal });
  if (result.exitCode !== 0 && !onlyDevicesMissing(local, result)) {
    throw explain(local, options.image, argv, result);
  }
  // The image is what its files are, not how they came.
  if (kind === "registry") rmSync(local.location, { recursive: true });
}

async function pulled(uri: string, options: UnpackOptions): Promise<Local> {
  try {
    return await pullImage(uri, options);
  } catch (error) {
    options.signal.throwIfAborted();
    if (!(error instanceof ServiceError)) throw error;
    const { code, message, field, mend = noWay(uri), cause } = error;
    const told =
      code === "address_forbidden" ? message : `the image ${uri} can't be fetched: ${message}`;
    throw new ServiceError(code, told, { ...(field && { field }), mend, cause });
  }
}

function noWay(uri: string): string {
  return `on a node without a way to the registry: \`apptainer pull image.sif ${uri}\` elsewhere, and \`rolloutd images add image.sif\` here; task_images (KIND=REFERENCE, with {field}) names images of your own for a kind's rows`;
}

async function toolFor(source: Local, { folder, apptainer }: UnpackOptions): Promise<Tool> {
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
    case "oci":
      // By its name alone, because Apptainer writes into the image where it came from.
      return build(apptainer, folder, `oci:${basename(source.location)}`);
  }
}

const MEND = "Install Apptainer, or name it with --apptainer.";

function build(apptainer: string, folder: string, from: string): Tool {
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
    env: { HOME: folder, ...own },
  };
}

/** Apptainer brings its own, which knows what Apptainer writes. */
function findUnsquashfs(apptainer: string): string | null {
  const program = Bun.which(apptainer);
  const beside = program === null ? null : join(dirname(program), "unsquashfs");
  const found = [beside, Bun.which("unsquashfs")].filter((path) => path !== null);
  return found.find((path) => whyNotExecutable(path) === null) ?? null;
}

function onlyDevicesMissing({ kind }: Local, { exitCode, output }: ToolResult): boolean {
  if (!["sif", "tar", "folder"].includes(kind) || exitCode > 2) return false;
  const lines = output.split("\n").filter((line) => !EPILOGUE.test(line));
  return lines.length > 0 && lines.every((line) => DEVICE.test(line));
}

function explain(source: Local, image: string, argv: string[], result: ToolResult): ServiceError {
  const { output, exitCode } = result;
  const said = lastWords(output) || `${argv[0]} ended with ${exitCode}`;
  if (DISK_FULL.test(output)) return diskFull(image, said);
  const missing = NO_PROGRAM.exec(output)?.[1];
  if (missing) {
    const what = `the image ${image} needs ${missing}, which this node lacks`;
    return new ServiceError("sandbox_unavailable", what, { mend: `install ${missing}` });
  }
  const mend =
    source.kind === "tar" ? { mend: "an archive of docker save is docker-archive:PATH" } : {};
  return new ServiceError("image_invalid", `the image ${image} can't be unpacked: ${said}`, mend);
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

import { abortable } from "../lib/abortable.ts";
import type { ControlChannel } from "./control-channel.ts";
import { FileError } from "./file-error.ts";
import type { StreamKind } from "./frames.ts";
import { ProcessStream, StartError } from "./process-stream.ts";

const KILLED = "EIO";

/** Whole or not at all: a file above `maxBytes` is `EFBIG`. Only regular files. */
export async function readFile(
  channel: ControlChannel,
  cwd: string,
  path: string,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  const spawn = fileSpawn("readFile", maxBytes, cwd, path);
  const reader = new ProcessStream(channel, spawn, (bytes) => chunks.push(Buffer.from(bytes)));
  await finished(reader, path, "read", signal);
  return Buffer.concat(chunks);
}

/** Makes missing folders and replaces what is there; links are followed as the sandbox sees them. */
export async function writeFile(
  channel: ControlChannel,
  cwd: string,
  path: string,
  data: string | Uint8Array,
  mode: number,
  signal?: AbortSignal,
): Promise<void> {
  const spawn = fileSpawn("writeFile", mode, cwd, path);
  const writer = new ProcessStream(channel, spawn, () => {});
  writer.write(Buffer.from(data));
  writer.endInput();
  await finished(writer, path, "write", signal);
}

function fileSpawn(kind: StreamKind, argument: number, cwd: string, path: string) {
  return { kind, argument, cwd, argv: [path], env: {} };
}

async function finished(
  process: ProcessStream,
  path: string,
  verb: string,
  signal?: AbortSignal,
): Promise<void> {
  try {
    const { code } = await abortable(process.exited, signal);
    if (code !== 0) throw new FileError(code ?? KILLED, path, verb);
  } catch (error) {
    if (process.open) process.signal(9);
    throw error instanceof StartError ? new FileError(error.errno, path, verb) : error;
  }
}

import { abortable } from "../lib/abortable.ts";
import type { ControlChannel } from "./control-channel.ts";
import { FileError } from "./file-error.ts";
import { ProcessStream, StartError } from "./process-stream.ts";
import type { TreeLimits, TreePart, TreeTotals } from "./tree.ts";
import { encodePart, TreeDecoder } from "./tree-records.ts";

/** A killed child of the supervisor's: by the sandbox, which may. */
const KILLED = "EIO";

export type TreeOptions = TreeLimits & { cwd: string; path: string; signal?: AbortSignal };

/**
 * All below a folder, in no particular order, each folder in front of what it holds. Read as fast as the parts are
 * taken, and no further once they are not.
 */
export async function* readTree(
  channel: ControlChannel,
  options: TreeOptions,
): AsyncGenerator<TreePart> {
  const { path, signal } = options;
  const chunks: Buffer[] = [];
  let arrived = Promise.withResolvers<void>();
  const spawn = { kind: "readTree" as const, cwd: options.cwd, argv: [path], env: {} };
  const reader = new ProcessStream(channel, spawn, (bytes) => {
    chunks.push(Buffer.from(bytes));
    arrived.resolve();
    return "later";
  });
  const decoder = new TreeDecoder("read");
  const counter = new TreeCounter(options, "read");
  const ended = reader.exited.finally(() => arrived.resolve());
  ended.catch(() => {});
  try {
    for (;;) {
      const chunk = chunks.shift();
      if (chunk === undefined) {
        if (!reader.open) break;
        arrived = Promise.withResolvers();
        await abortable(arrived.promise, signal);
        continue;
      }
      signal?.throwIfAborted();
      for (const part of decoder.push(chunk)) {
        counter.count(part);
        yield part;
      }
      reader.taken(chunk.length);
    }
    const { code } = await ended;
    if (code !== 0 || !decoder.atBoundary) throw new FileError(code || KILLED, path, "read");
  } catch (error) {
    throw error instanceof StartError ? new FileError(error.errno, path, "read") : error;
  } finally {
    reader.abandon();
  }
}

/**
 * Below a folder, which is made where it is missing. What is in the way is replaced, except that no file
 * takes the place of a folder. What was written before a failure stays.
 */
export async function writeTree(
  channel: ControlChannel,
  options: TreeOptions,
  parts: AsyncIterable<TreePart> | Iterable<TreePart>,
): Promise<TreeTotals> {
  const { path, signal } = options;
  let said = Buffer.alloc(0);
  const spawn = { kind: "writeTree" as const, cwd: options.cwd, argv: [path], env: {} };
  const writer = new ProcessStream(channel, spawn, (bytes) => {
    if (said.length < 16_384) said = Buffer.concat([said, bytes]);
  });
  const counter = new TreeCounter(options, "write");
  try {
    await abortable(writer.started, signal);
    for await (const part of parts) {
      signal?.throwIfAborted();
      counter.count(part);
      writer.write(encodePart(part));
      await abortable(writer.sent(), signal);
      if (!writer.open) break;
    }
    writer.endInput();
    const { code } = await abortable(writer.exited, signal);
    // The record in which it says where it could not go on.
    for (const _ of new TreeDecoder("write").push(said)) break;
    if (code !== 0) throw new FileError(code ?? KILLED, path, "write");
    return counter.totals;
  } catch (error) {
    throw error instanceof StartError ? new FileError(error.errno, path, "write") : error;
  } finally {
    writer.abandon();
  }
}

class TreeCounter {
  readonly totals: TreeTotals = { files: 0, bytes: 0, left: [] };
  readonly #limits: TreeOptions;
  readonly #verb: string;
  #entries = 0;

  constructor(limits: TreeOptions, verb: string) {
    this.#limits = limits;
    this.#verb = verb;
  }

  /** @throws FileError `EFBIG` beyond the limits. */
  count(part: TreePart): void {
    const { totals } = this;
    const { maxBytes, maxEntries, path } = this.#limits;
    if (part.kind === "data") totals.bytes += part.bytes.length;
    else this.#entries++;
    if (part.kind === "file") totals.files++;
    if (part.kind === "left") totals.left.push({ path: part.path, why: part.why });
    const tooMany = this.#entries > maxEntries ? `${maxEntries} entries` : null;
    const over = totals.bytes > maxBytes ? `${maxBytes} bytes` : tooMany;
    if (over !== null) throw new FileError("EFBIG", path, this.#verb, `more than ${over}`);
  }
}

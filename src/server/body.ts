import { ServiceError } from "../errors.ts";
import { parseWithTools } from "../lib/exact-tools.ts";
import { isDeeper, MAX_JSON_DEPTH } from "../lib/is-deeper.ts";
import { expectJsonBody } from "./body-type.ts";

/** Of the greatest size, that are on their way at once; a client that sends slowly holds what it has declared. */
const BODIES_AT_ONCE = 16;

/** Of the bodies that are read just now, in all of the process: its memory is one. */
let expectedBytes = 0;

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** Reads a JSON body of bounded size. @throws ServiceError `unsupported_body`, `body_too_large`, `bad_json`, `too_many_waiting` */
export async function readJson(request: Request, maxBytes: number): Promise<unknown> {
  expectJsonBody(request.headers);
  const body = parseJson(await readText(request, maxBytes));
  if (isDeeper(body)) {
    const message = `the body has more than ${MAX_JSON_DEPTH} lists and objects within each other`;
    throw new ServiceError("bad_json", message, { field: "body" });
  }
  return body;
}

function parseJson(text: string): unknown {
  try {
    return parseWithTools(text);
  } catch (error) {
    const message = `the body is not valid JSON: ${(error as Error).message}`;
    throw new ServiceError("bad_json", message, { field: "body" });
  }
}

async function readText(request: Request, maxBytes: number): Promise<string> {
  const declared = request.headers.get("content-length");
  if (Number(declared ?? 0) > maxBytes) throw tooLarge(maxBytes);
  using room = new Room(BODIES_AT_ONCE * maxBytes);
  // The server takes no more than was declared; in one piece it costs a tenth of a stream.
  room.take(Number(declared ?? 0));
  const bytes = await (declared === null ? readStream(request, maxBytes, room) : request.bytes());
  if (bytes.byteLength > maxBytes) throw tooLarge(maxBytes);
  try {
    return UTF8.decode(bytes);
  } catch (error) {
    const options = { field: "body", cause: error };
    throw new ServiceError("bad_json", "the body is not valid UTF-8", options);
  }
}

async function readStream(request: Request, maxBytes: number, room: Room): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  if (request.body) {
    for await (const chunk of request.body) {
      size += chunk.byteLength;
      if (size > maxBytes) throw tooLarge(maxBytes);
      room.take(chunk.byteLength);
      chunks.push(chunk);
    }
  }
  return Buffer.concat(chunks);
}

/** What one body takes of the room for all. */
class Room implements Disposable {
  readonly #allBytes: number;
  #taken = 0;

  constructor(allBytes: number) {
    this.#allBytes = allBytes;
  }

  /** @throws ServiceError `too_many_waiting` */
  take(bytes: number): void {
    if (expectedBytes + bytes > this.#allBytes) {
      const mend = "come back later, or send smaller bodies";
      throw new ServiceError("too_many_waiting", "too many bodies are on their way", { mend });
    }
    expectedBytes += bytes;
    this.#taken += bytes;
  }

  [Symbol.dispose](): void {
    expectedBytes -= this.#taken;
  }
}

function tooLarge(maxBytes: number): ServiceError {
  const mend = "send fewer rollouts in one request, or raise max_body_bytes";
  const message = `the body is larger than ${maxBytes} bytes`;
  return new ServiceError("body_too_large", message, { field: "body", mend });
}

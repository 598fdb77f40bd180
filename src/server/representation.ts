import { gzipSync } from "node:zlib";
import { ServiceError } from "../errors.ts";
import { trajectoryToMsgpack } from "../protocol/trajectory-msgpack.ts";
import { trajectoryToProtobuf } from "../protocol/trajectory-protobuf.ts";
import { type TrajectoryQuery, viewTrajectory } from "../protocol/trajectory-view.ts";

type Form = {
  type: string;
  /** The names by which clients ask for it. */
  names: string[];
  encode(record: string, query: TrajectoryQuery): Uint8Array;
  /** Of many in one body, one after the other. */
  many: { type: string; frame(encoded: Uint8Array): Uint8Array[] };
};

/** The forms of a trajectory; the first is the default. */
const FORMS: Form[] = [
  {
    type: "application/json",
    names: [
      "application/json",
      "application/*",
      "*/*",
      "application/jsonl",
      "application/x-ndjson",
    ],
    encode: (record, query) =>
      Buffer.from(query.messages ? record : JSON.stringify(viewTrajectory(record, query))),
    many: { type: "application/jsonl", frame: (line) => [line, NEWLINE] },
  },
  {
    type: "application/msgpack",
    names: ["application/msgpack", "application/x-msgpack", "application/vnd.msgpack"],
    encode: (record, query) => trajectoryToMsgpack(viewTrajectory(record, query)),
    many: { type: "application/msgpack", frame: (value) => [value] },
  },
  {
    type: "application/x-protobuf",
    names: ["application/x-protobuf", "application/protobuf", "application/vnd.google.protobuf"],
    encode: (record, query) => trajectoryToProtobuf(viewTrajectory(record, query)),
    many: {
      type: "application/x-protobuf",
      frame: (message) => [varint(message.byteLength), message],
    },
  },
];

const CODINGS: Record<string, (body: Uint8Array) => Uint8Array> = {
  zstd: (body) => Bun.zstdCompressSync(body as Uint8Array<ArrayBuffer>),
  gzip: (body) => gzipSync(body),
};

type Compression = ReadableWritablePair<Uint8Array, Uint8Array>;

const NEWLINE = Buffer.from("\n");

/** Below it, compressing costs more than it saves. Units: bytes. */
const MIN_COMPRESSED = 1024;

/** A stored trajectory in the form and coding that the request accepts. @throws ServiceError `not_acceptable` */
export function trajectoryResponse(
  request: Request,
  record: string,
  query: TrajectoryQuery,
): Response {
  const form = formFor(request);
  const body = form.encode(record, query);
  const headers = new Headers({ "content-type": form.type, vary: "accept, accept-encoding" });
  const coding = codingFor(request);
  const compress = body.byteLength < MIN_COMPRESSED ? undefined : CODINGS[coding ?? ""];
  if (!compress || !coding) return new Response(body as Uint8Array<ArrayBuffer>, { headers });
  headers.set("content-encoding", coding);
  return new Response(compress(body) as Uint8Array<ArrayBuffer>, { headers });
}

/**
 * Many of them in one body: a line of JSON each, msgpack values one after the other, or protobuf messages with
 * their lengths before them. The next one is read when the client has taken the last, so that it costs the
 * memory of one.
 *
 * @throws ServiceError `not_acceptable`
 */
export function trajectoriesResponse(
  request: Request,
  records: Iterator<string> | AsyncIterator<string>,
  query: TrajectoryQuery,
  headers: Record<string, string>,
): Response {
  const { encode, many } = formFor(request);
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await records.next();
      if (done) return controller.close();
      for (const part of many.frame(encode(value, query))) controller.enqueue(part);
    },
  });
  const all = { ...headers, "content-type": many.type, vary: "accept, accept-encoding" };
  const coding = codingFor(request);
  if (coding === undefined || coding === "identity") return new Response(body, { headers: all });
  // Bun's knows zstd as well, and its types know neither.
  const compression = new CompressionStream(coding as "gzip") as unknown as Compression;
  const compressed = body.pipeThrough(compression);
  return new Response(compressed, { headers: { ...all, "content-encoding": coding } });
}

function formFor(request: Request): Form {
  const accept = request.headers.get("accept") ?? "*/*";
  const wanted = byPreference(accept);
  const form = wanted.flatMap((name) => FORMS.filter(({ names }) => names.includes(name)))[0];
  if (form) return form;
  const types = FORMS.map(({ type }) => type).join(", ");
  const message = `a trajectory can't be given as ${accept.slice(0, 200)}`;
  const mend = `ask for one of: ${types}`;
  throw new ServiceError("not_acceptable", message, { field: "accept", mend });
}

function codingFor(request: Request): string | undefined {
  const codings = byPreference(request.headers.get("accept-encoding") ?? "");
  return codings.find((name) => name === "identity" || Object.hasOwn(CODINGS, name));
}

/** A length as protobuf's streams have it: seven bits a byte, the lowest first. */
function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Uint8Array.from([...bytes, rest]);
    bytes.push((rest % 128) | 128);
  }
}

/** The names of an `Accept` header, the most wanted first; without those that it refuses. */
function byPreference(header: string): string[] {
  return header
    .split(",")
    .map((part) => {
      const [name = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
      const quality = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
      return { name, quality: quality === undefined ? 1 : Number(quality) };
    })
    .filter(({ name, quality }) => name !== "" && quality > 0)
    .toSorted((a, b) => b.quality - a.quality)
    .map(({ name }) => name);
}

import { gzipSync } from "node:zlib";
import { ServiceError } from "../errors.ts";
import { trajectoryToMsgpack } from "../protocol/trajectory-msgpack.ts";
import { trajectoryToProtobuf } from "../protocol/trajectory-protobuf.ts";

/** The forms of a trajectory, by the names that clients ask for them; the first is the default. */
const FORMS: { type: string; names: string[]; encode(record: string): Uint8Array }[] = [
  {
    type: "application/json",
    names: ["application/json", "application/*", "*/*"],
    encode: (record) => Buffer.from(record),
  },
  {
    type: "application/msgpack",
    names: ["application/msgpack", "application/x-msgpack", "application/vnd.msgpack"],
    encode: (record) => trajectoryToMsgpack(JSON.parse(record)),
  },
  {
    type: "application/x-protobuf",
    names: ["application/x-protobuf", "application/protobuf", "application/vnd.google.protobuf"],
    encode: (record) => trajectoryToProtobuf(JSON.parse(record)),
  },
];

const CODINGS: Record<string, (body: Uint8Array) => Uint8Array> = {
  zstd: (body) => Bun.zstdCompressSync(body as Uint8Array<ArrayBuffer>),
  gzip: (body) => gzipSync(body),
};

/** Below it, compressing costs more than it saves. Units: bytes. */
const MIN_COMPRESSED = 1024;

/** A stored trajectory in the form and coding that the request accepts. @throws ServiceError `not_acceptable` */
export function trajectoryResponse(request: Request, record: string): Response {
  const accept = request.headers.get("accept") ?? "*/*";
  const wanted = byPreference(accept);
  const form = wanted.flatMap((name) => FORMS.filter(({ names }) => names.includes(name)))[0];
  if (!form) {
    const types = FORMS.map(({ type }) => type).join(", ");
    const message = `a trajectory can't be given as ${accept.slice(0, 200)}`;
    throw new ServiceError("not_acceptable", message, {
      field: "accept",
      mend: `ask for one of: ${types}`,
    });
  }
  const body = form.encode(record);
  const headers = new Headers({ "content-type": form.type, vary: "accept, accept-encoding" });
  const codings = byPreference(request.headers.get("accept-encoding") ?? "");
  const coding = codings.find((name) => name === "identity" || name in CODINGS);
  const compress = body.byteLength < MIN_COMPRESSED ? undefined : CODINGS[coding ?? ""];
  if (!compress || !coding) return new Response(body as Uint8Array<ArrayBuffer>, { headers });
  headers.set("content-encoding", coding);
  return new Response(compress(body) as Uint8Array<ArrayBuffer>, { headers });
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

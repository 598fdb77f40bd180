import { ServiceError } from "../errors.ts";

/** Reads a JSON body of bounded size. @throws ServiceError `body_too_large`, `bad_json` */
export async function readJson(request: Request, maxBytes: number): Promise<unknown> {
  const text = await readText(request, maxBytes);
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = `the body is not valid JSON: ${(error as Error).message}`;
    throw new ServiceError("bad_json", message, { field: "body" });
  }
}

async function readText(request: Request, maxBytes: number): Promise<string> {
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > maxBytes) throw tooLarge(maxBytes);
  const chunks: Uint8Array[] = [];
  let size = 0;
  if (request.body) {
    for await (const chunk of request.body) {
      size += chunk.byteLength;
      if (size > maxBytes) throw tooLarge(maxBytes);
      chunks.push(chunk);
    }
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch (error) {
    const options = { field: "body", cause: error };
    throw new ServiceError("bad_json", "the body is not valid UTF-8", options);
  }
}

function tooLarge(maxBytes: number): ServiceError {
  const mend = "send fewer rollouts in one request, or raise max_body_bytes";
  const message = `the body is larger than ${maxBytes} bytes`;
  return new ServiceError("body_too_large", message, { field: "body", mend });
}

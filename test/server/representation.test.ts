import { describe, expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { unpack } from "msgpackr/unpack";
import { trajectoryResponse } from "../../src/server/representation.ts";
import { failureOf } from "../support/failure.ts";
import { exampleTrajectory } from "../support/trajectories.ts";

const RECORD = JSON.stringify(exampleTrajectory());

function ask(headers: Record<string, string>, record = RECORD) {
  return trajectoryResponse(new Request("http://h/", { headers }), record);
}

const typeFor = (accept: string) => ask({ accept }).headers.get("content-type");

describe("a trajectory", () => {
  test("is the stored JSON unless another form is asked for", async () => {
    for (const headers of [
      {},
      { accept: "*/*" },
      { accept: "text/html, application/json;q=0.5" },
    ]) {
      const response = ask(headers as Record<string, string>);
      expect(response.headers.get("content-type")).toBe("application/json");
      expect(response.headers.has("content-encoding")).toBe(false);
      expect(await response.text()).toBe(RECORD);
    }
  });

  test("comes as msgpack or protobuf, whichever the client prefers", async () => {
    expect(typeFor("application/x-msgpack")).toBe("application/msgpack");
    expect(typeFor("application/protobuf")).toBe("application/x-protobuf");
    expect(typeFor("application/json;q=0.1, application/msgpack")).toBe("application/msgpack");
    expect(typeFor("application/msgpack;q=0, application/json")).toBe("application/json");
    const body = await ask({ accept: "application/msgpack" }).bytes();
    expect(unpack(body).job_id).toBe("j");
  });

  test("in no other form, which the error names", async () => {
    expect(await failureOf(() => ask({ accept: "image/png" }))).toMatchObject({
      code: "not_acceptable",
      field: "accept",
    });
  });

  test("is compressed as the client accepts it", async () => {
    const zstd = ask({ "accept-encoding": "gzip;q=0.5, zstd" });
    expect(zstd.headers.get("content-encoding")).toBe("zstd");
    expect(Bun.zstdDecompressSync(await zstd.bytes()).toString()).toBe(RECORD);
    const gzip = ask({ "accept-encoding": "br, gzip" });
    expect(gzip.headers.get("content-encoding")).toBe("gzip");
    expect(gunzipSync(await gzip.bytes()).toString()).toBe(RECORD);
    expect(ask({ "accept-encoding": "identity" }).headers.has("content-encoding")).toBe(false);
  });
});

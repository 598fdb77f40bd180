import { describe, expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { fromBinary } from "@bufbuild/protobuf";
import { unpack, unpackMultiple } from "msgpackr/unpack";
import { trajectorySchema } from "../../src/protocol/trajectory-protobuf.ts";
import { trajectoriesResponse, trajectoryResponse } from "../../src/server/representation.ts";
import { failureOf } from "../support/failure.ts";
import { exampleTrajectory } from "../support/trajectories.ts";

const RECORD = JSON.stringify(exampleTrajectory());

const ALL = { messages: true };

function ask(headers: Record<string, string>, query = ALL) {
  return trajectoryResponse(new Request("http://h/", { headers }), RECORD, query);
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

  test("comes without its texts in each form where they are not wanted", async () => {
    const { messages, tools, ...rest } = exampleTrajectory();
    const light = { messages: false };
    expect(await ask({}, light).json()).toEqual(rest);
    const packed = unpack(await ask({ accept: "application/msgpack" }, light).bytes());
    expect(Object.keys(packed)).toEqual(Object.keys(rest));
    expect([messages.length > 0, tools.length > 0]).toEqual([true, true]);
    const body = await ask({ accept: "application/x-protobuf" }, light).bytes();
    const message = fromBinary(trajectorySchema(), body) as unknown as Record<string, unknown[]>;
    const { turns } = exampleTrajectory();
    expect([message.messages, message.tools, message.turns?.length]).toEqual([
      ...[[], [], turns.length],
    ]);
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

describe("many trajectories in one body", () => {
  const names = ["a", "b", "c"];
  const records = () =>
    names.map((job_id) => RECORD.replace('"job_id":"j"', `"job_id":"${job_id}"`));
  const many = (headers: Record<string, string>) =>
    trajectoriesResponse(new Request("http://h/", { headers }), records().values(), ALL, {
      next: "7",
    });

  test("are lines of JSON, msgpack values, or protobuf messages behind their lengths", async () => {
    const lines = many({});
    expect([lines.headers.get("content-type"), lines.headers.get("next")]).toEqual([
      ...["application/jsonl", "7"],
    ]);
    expect((await lines.text()).split("\n")).toEqual([...records(), ""]);
    const packed = unpackMultiple(await many({ accept: "application/msgpack" }).bytes());
    expect((packed as { job_id: string }[]).map(({ job_id }) => job_id)).toEqual(names);
    const body = await many({ accept: "application/x-protobuf" }).bytes();
    expect(delimited(body).map((message) => message.jobId)).toEqual(names);
  });

  test("are compressed as one stream", async () => {
    const gzip = many({ "accept-encoding": "gzip" });
    expect(gzip.headers.get("content-encoding")).toBe("gzip");
    expect(gunzipSync(await gzip.bytes()).toString()).toBe(
      records()
        .map((one) => `${one}\n`)
        .join(""),
    );
  });

  test("are read one by one, as the client takes them", async () => {
    let read = 0;
    const counted = records().map((record) => record);
    const source: Iterator<string> = {
      next: () => {
        const value = counted[read++];
        return value === undefined ? { done: true, value } : { done: false, value };
      },
    };
    const reader = trajectoriesResponse(
      new Request("http://h/"),
      source,
      ALL,
      {},
    ).body?.getReader();
    await reader?.read();
    expect(read).toBeLessThan(3);
    await reader?.cancel();
  });
});

/** Messages with their lengths before them, as varints. */
function delimited(body: Uint8Array) {
  const messages: { jobId?: unknown }[] = [];
  for (let at = 0; at < body.length; ) {
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = body[at++] as number;
      length += (byte & 127) * 2 ** shift;
      if (byte < 128) break;
    }
    messages.push(fromBinary(trajectorySchema(), body.subarray(at, at + length)) as never);
    at += length;
  }
  return messages;
}

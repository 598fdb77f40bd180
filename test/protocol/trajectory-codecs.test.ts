import { describe, expect, test } from "bun:test";
import { fromBinary, toJson } from "@bufbuild/protobuf";
import { unpack } from "msgpackr/unpack";
import { readProto } from "../../src/protocol/proto-file.ts";
import { type PackedNumbers, trajectoryToMsgpack } from "../../src/protocol/trajectory-msgpack.ts";
import { trajectorySchema, trajectoryToProtobuf } from "../../src/protocol/trajectory-protobuf.ts";
import type { Trajectory } from "../../src/trajectory/record.ts";
import { exampleTrajectory } from "../support/trajectories.ts";

/** What any reader does that knows the layout from the README. */
function numbers({ dtype, data }: PackedNumbers): number[] {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const at = <T>(bytes: number, read: (offset: number) => T, count: number) =>
    Array.from({ length: count }, (_, index) => read(index * bytes));
  if (dtype === "<u4") return at(4, (offset) => view.getUint32(offset, true), data.length / 4);
  if (dtype === "<f4") return at(4, (offset) => view.getFloat32(offset, true), data.length / 4);
  return at(8, (offset) => view.getFloat64(offset, true), data.length / 8);
}

function throughMsgpack(trajectory: Trajectory) {
  const read = unpack(trajectoryToMsgpack(trajectory));
  for (const segment of read.segments) {
    segment.ids = numbers(segment.ids);
    segment.logprobs &&= numbers(segment.logprobs);
  }
  return read;
}

function throughProtobuf(trajectory: Trajectory) {
  const schema = trajectorySchema();
  const message = fromBinary(schema, trajectoryToProtobuf(trajectory));
  // biome-ignore lint/suspicious/noExplicitAny: what the assertions look at is what is tested.
  return toJson(schema, message, { useProtoFieldName: true }) as any;
}

describe("msgpack", () => {
  test("holds what JSON does", () => {
    expect(throughMsgpack(exampleTrajectory())).toEqual(exampleTrajectory());
  });

  test("changes no log-probability, whether 32 bits hold it or not, and no id of 32 bits", () => {
    const given = exampleTrajectory();
    const [segment] = given.segments;
    if (segment) segment.logprobs = [-0.1, -1e-300, -5.3, 0, -1 / 3];
    if (segment) segment.ids[0] = 2 ** 31 - 1;
    expect(throughMsgpack(given)).toEqual(given);
  });

  test("says so where there are no log-probabilities and no ids", () => {
    const given = exampleTrajectory();
    if (given.segments[0]) given.segments[0].logprobs = null;
    expect(throughMsgpack(given)).toEqual(given);
    const text: Trajectory = { ...given, token_ids: "absent", segments: [] };
    expect(throughMsgpack(text)).toEqual(text);
  });
});

describe("protobuf", () => {
  test("holds what JSON does, in the shape of rollout.proto", () => {
    const given = exampleTrajectory();
    const [segment] = given.segments;
    const read = throughProtobuf(given);
    expect(read.segments[0].ids).toEqual(segment?.ids);
    // What is zero is not written, and reads as zero.
    const spans = segment?.spans.map(({ start, mask, ...span }) => ({
      ...span,
      ...(start > 0 && { start }),
      ...(mask > 0 && { mask }),
    }));
    expect(read.segments[0].spans).toEqual(spans);
    expect(read.segments[0].logprobs).toEqual({ float32: segment?.logprobs });
    expect(read.messages[2]).toEqual({
      role: "assistant",
      reasoning_content: "hm",
      tool_calls: [
        { id: "call00000", name: "think", arguments: '{"n": 0' },
        { id: "call00001", name: "think", arguments: '{"n": 1' },
      ],
    });
    const [turn] = given.turns;
    const { queue_ms: _, ...rest } = turn as NonNullable<typeof turn>;
    const weight_spans = [
      { version: "6", end: 1 },
      { version: "7", start: 1, end: 3 },
    ];
    expect(read.turns[0]).toEqual({ ...rest, weight_spans });
    expect(JSON.parse(read.tools[0].parameters)).toEqual(given.tools[0]?.function.parameters);
    expect([read.job_id, read.attempt, "stop_reason" in read]).toEqual(["j", 2, false]);
  });

  test("changes no log-probability that needs 64 bits", () => {
    const given = exampleTrajectory();
    if (given.segments[0]) given.segments[0].logprobs = [-0.1, -0.2, -0.3, -0.4, -0.5];
    const { logprobs } = throughProtobuf(given).segments[0];
    expect(logprobs).toEqual({ float64: [-0.1, -0.2, -0.3, -0.4, -0.5] });
  });

  test("a .proto file that uses more than is known is an error that names the line", () => {
    const text = 'syntax = "proto3";\npackage p;\nmessage M {\n  map<string, string> m = 1;\n}\n';
    expect(() => readProto(text, "x.proto")).toThrow("x.proto:4: not understood: map");
  });
});

import { expect, test } from "bun:test";
import { EventStream } from "../../src/inference/event-stream.ts";

function read(...chunks: (string | Uint8Array)[]): string[] {
  const messages: string[] = [];
  const stream = new EventStream((data) => messages.push(data));
  for (const chunk of chunks) stream.push(Buffer.from(chunk as string));
  return messages;
}

test("messages are the same wherever the stream is cut", () => {
  const text =
    ': hello\r\nevent: x\ndata: {"a": "ü𝄞"}\r\n\r\ndata:b\ndata: c\n\n\ndata: [DONE]\n\n';
  const bytes = Buffer.from(text);
  const expected = ['{"a": "ü𝄞"}', "b\nc", "[DONE]"];
  expect(read(text)).toEqual(expected);
  for (let at = 0; at <= bytes.length; at++) {
    expect(read(bytes.subarray(0, at), bytes.subarray(at))).toEqual(expected);
  }
  expect(read(...Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(expected);
});

test("a message that has not ended is none, and bytes that are no text are an error", () => {
  expect(read("data: a\n")).toEqual([]);
  expect(() => read(Uint8Array.of(0x64, 0xff))).toThrow(TypeError);
});

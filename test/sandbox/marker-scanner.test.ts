import { expect, test } from "bun:test";
import { type Marker, MarkerScanner } from "../../src/sandbox/marker-scanner.ts";

/** Feeds `text` in pieces of `size` to a scanner that expects `nonce`. */
function scan(text: string, size: number, nonce = "n1") {
  let output = "";
  const markers: Marker[] = [];
  const scanner = new MarkerScanner((bytes) => (output += bytes.toString("latin1")));
  scanner.expect(nonce);
  const bytes = Buffer.from(text, "latin1");
  for (let at = 0; at < bytes.length; at += size) {
    const marker = scanner.push(bytes.subarray(at, at + size));
    if (marker) markers.push(marker);
  }
  return { output, markers };
}

test("wherever the pieces are cut, the marker is found and the output is all the rest", () => {
  const text = "out \x1b]777;n2;0\0/\0\0\x1b]77\x1b\x1b]777;n1;130\0/a;\x07b\0/bin/py\0late";
  for (let size = 1; size <= text.length; size++) {
    expect(scan(text, size)).toEqual({
      output: "out \x1b]777;n2;0\0/\0\0\x1b]77\x1blate",
      markers: [{ status: 130, cwd: "/a;\x07b", python: "/bin/py" }],
    });
  }
});

test("a marker whose nonce was answered already is output", () => {
  const { output, markers } = scan("\x1b]777;n1;0\0/\0\0\x1b]777;n1;1\0/\0\0", 7);
  expect(markers).toEqual([{ status: 0, cwd: "/", python: "" }]);
  expect(output).toBe("\x1b]777;n1;1\0/\0\0");
});

test("a beginning that never becomes a marker is output, and bounded in memory", () => {
  const { output, markers } = scan(`\x1b]777;n1;${"x".repeat(20_000)}`, 1000);
  expect(markers).toEqual([]);
  expect(output).toStartWith("\x1b]777;n1;xxx");
});

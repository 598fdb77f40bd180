import { expect, test } from "bun:test";
import { BoundedOutput } from "../../src/lib/bounded-output.ts";

/** What it should give, computed from all bytes at once. */
function expected(all: string, maxBytes: number): string {
  if (all.length <= maxBytes) return all;
  const head = all.slice(0, Math.ceil(maxBytes / 2));
  const tail = all.slice(all.length - Math.floor(maxBytes / 2));
  return `${head}\n[... ${all.length - maxBytes} bytes cut ...]\n${tail}`;
}

test("whatever the pieces, the first and the last bytes are kept and the cut is stated", () => {
  for (const maxBytes of [1, 2, 7, 100, 4096, 5000]) {
    for (const pieceBytes of [1, 3, 50, 2000, 9000]) {
      for (const pieces of [0, 1, 2, 5, 40]) {
        const output = new BoundedOutput(maxBytes);
        let all = "";
        for (let i = 0; i < pieces; i++) {
          const piece = String.fromCharCode(97 + (i % 26)).repeat(pieceBytes - 1) + (i % 10);
          all += piece;
          output.push(Buffer.from(piece));
        }
        expect(output.text()).toBe(expected(all, maxBytes));
        expect(output.cutBytes).toBe(Math.max(0, all.length - maxBytes));
      }
    }
  }
});

test("bytes that somebody else has left out are stated between the two ends", () => {
  const output = new BoundedOutput(4);
  output.push(Buffer.from("aabb"));
  output.skip(10);
  expect(output.text()).toBe("aa\n[... 10 bytes cut ...]\nbb");
});

test("the pieces are copied: a caller may use its buffer again", () => {
  const output = new BoundedOutput(100);
  const buffer = Buffer.from("one");
  output.push(buffer);
  buffer.write("two");
  expect(output.text()).toBe("one");
});

test("each end is cleaned by itself and bytes that are no UTF-8 are replaced", () => {
  const output = new BoundedOutput(6);
  output.push(Buffer.from([0x61, 0x62, 0xc3, 0x63, 0x63, 0x63, 0xa4, 0x64, 0x65]));
  expect(output.text((text) => `<${text}>`)).toBe("<ab\ufffd>\n[... 3 bytes cut ...]\n<\ufffdde>");
});

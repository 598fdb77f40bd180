import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Socket } from "bun";
import { BoundedOutput } from "../../src/lib/bounded-output.ts";
import { PythonConnection } from "../../src/sandbox/python-connection.ts";
import { waitFor } from "../support/wait-for.ts";

const MB = 1024 * 1024;
const MAX_OUTPUT = 100_000;
const HELLO = message("h");
const END = message("d", JSON.stringify({ ok: true, cut: 0, cwd: "/", python: "/p" }));
const IMAGE = message("i", "iVBORw0KGgo=");

function message(kind: string, payload: string | Buffer = ""): Buffer {
  const bytes = Buffer.concat([Buffer.from(`0000${kind}`), Buffer.from(payload)]);
  bytes.writeUInt32LE(bytes.length - 4);
  return bytes;
}

/** What stands behind the sandbox's socket, and says what the test wants of it. */
async function connected() {
  const folder = mkdtempSync(join(tmpdir(), "py-sock-"));
  const path = join(folder, "py.sock");
  const accepted = Promise.withResolvers<Socket>();
  const drained: (() => void)[] = [];
  let closed = false;
  const server = Bun.listen({
    unix: path,
    socket: {
      open: (socket) => accepted.resolve(socket),
      data() {},
      drain: () => drained.splice(0).forEach((resume) => void resume()),
      close: () => {
        closed = true;
        drained.splice(0).forEach((resume) => void resume());
      },
    },
  });
  const connection = (await PythonConnection.open(path)) as PythonConnection;
  const socket = await accepted.promise;
  return {
    connection,
    isClosed: () => closed,
    /** Returns how much went out before the other end closed. */
    async send(bytes: Buffer): Promise<number> {
      let sent = 0;
      while (sent < bytes.length && !closed) {
        const written = socket.write(bytes.subarray(sent));
        if (written < 0) break;
        sent += written;
        if (sent < bytes.length) await new Promise<void>((resume) => drained.push(resume));
      }
      return sent;
    },
    [Symbol.dispose]() {
      connection.close();
      server.stop(true);
      rmSync(folder, { recursive: true });
    },
  };
}

/** 64 MB or more of the same. */
function flood(of: Buffer): Buffer {
  return Buffer.alloc(64 * MB, of);
}

test.each([
  ["lines", message("o", "x".repeat(65_536))],
  ["single bytes", message("o", "x")],
  ["nothing", message("o")],
  ["images", IMAGE],
  ["ends", END],
  ["hellos", HELLO],
  ["unknown messages", message("x", "y".repeat(1000))],
  ["long messages", message("o", "x".repeat(2 * MB))],
])("P8: a flood of %s within a cell costs bounded work, and the connection", async (_of, of) => {
  using it = await connected();
  await it.send(HELLO);
  expect(await it.connection.hello).toBe(true);
  const output = new BoundedOutput(MAX_OUTPUT);
  const cell = it.connection.run("1", MAX_OUTPUT, output);
  // The rest waits in the socket's buffers, or comes with one read.
  expect(await it.send(flood(of))).toBeLessThan(8 * MB);
  await cell;
  await waitFor(() => !it.connection.open && it.isClosed(), "the connection to be closed");
  expect(output.cutBytes).toBe(0);
});

test.each([
  ["before hello", Buffer.alloc(0)],
  ["between cells", HELLO],
])("P8: a flood %s costs no work at all", async (_when, first) => {
  using it = await connected();
  await it.send(first);
  expect(await it.send(flood(message("o", "x")))).toBeLessThan(8 * MB);
  await waitFor(() => !it.connection.open, "the connection to be closed");
  expect(await it.connection.hello).toBe(first.length > 0);
});

test("what a driver may say is read the same however it is cut", async () => {
  const cells = Array.from({ length: 8 }, (_, i) =>
    Buffer.concat([message("o", `${i} `.repeat(1 + i * 400)), IMAGE, message("o", "end"), END]),
  );
  for (const pieceBytes of [1, 2, 3, 7, 64, 1 << 20]) {
    using it = await connected();
    for (const byte of HELLO) await it.send(Buffer.from([byte]));
    expect(await it.connection.hello).toBe(true);
    for (const [i, cell] of cells.entries()) {
      const output = new BoundedOutput(MAX_OUTPUT);
      const ended = it.connection.run("1", MAX_OUTPUT, output);
      for (let at = 0; at < cell.length; at += pieceBytes) {
        await it.send(cell.subarray(at, at + pieceBytes));
      }
      expect(await ended).toMatchObject({ ok: true, images: [expect.stringContaining("png")] });
      expect(output.text()).toBe(`${`${i} `.repeat(1 + i * 400)}end`);
    }
    expect(it.connection.open).toBe(true);
  }
});

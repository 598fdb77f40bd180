/**
 * The least that a submit can cost here: it is read and answered (`empty`), and before that kept in a file, with one
 * sync for all that came while the disk was busy (`synced FILE`). Its first line of output is its port.
 */
import { fdatasync, openSync, writeSync } from "node:fs";

/** Written over and over, so that the file system has no part in it. Units: bytes. */
const FILE_BYTES = 4 * 1024 * 1024;
const ANSWER = JSON.stringify({ created: true });

const [kind, path = ""] = process.argv.slice(2);
const keep = kind === "synced" ? keeper(path) : () => Promise.resolve();

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    await keep(await request.text());
    return new Response(ANSWER, { status: 201 });
  },
});
console.log(server.port);

function keeper(file: string): (text: string) => Promise<void> {
  const fd = openSync(file, "w");
  writeSync(fd, Buffer.alloc(FILE_BYTES));
  let waiting: { text: string; resolve: () => void }[] = [];
  let busy = false;
  let at = 0;
  const write = () => {
    busy = true;
    const taken = waiting;
    waiting = [];
    const bytes = Buffer.from(taken.map(({ text }) => text).join("\n"));
    if (at + bytes.length > FILE_BYTES) at = 0;
    at += writeSync(fd, bytes, 0, bytes.length, at);
    fdatasync(fd, (error) => {
      if (error) throw error;
      busy = false;
      for (const { resolve } of taken) resolve();
      if (waiting.length > 0) write();
    });
  };
  return (text) =>
    new Promise((resolve) => {
      waiting.push({ text, resolve });
      if (!busy) write();
    });
}

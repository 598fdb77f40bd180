import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Socket } from "bun";
import { percentile, print, round } from "./line.ts";

const EXCHANGES = 200;
const ROUNDS = 50;
/** A command and its answer are of about this size. */
const SIZES = [200, 65_536];

type Exchange = { once(bytes: number): Promise<void>; end(): void };

/** A message there and back between two processes, over a Unix socket and over loopback TCP, in turns. */
export async function unixVsTcp(): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "rolloutd-bench-"));
  const echo = Bun.spawn([process.execPath, "-e", ECHO, join(dir, "sock")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const { value } = await echo.stdout[Symbol.asyncIterator]().next();
    const port = Number(Buffer.from(value as Uint8Array).toString());
    const unix = await connect({ unix: join(dir, "sock") });
    const tcp = await connect({ hostname: "127.0.0.1", port });
    for (const bytes of SIZES) await measure(bytes, unix, tcp);
    unix.end();
    tcp.end();
  } finally {
    echo.kill();
    await echo.exited;
    await rm(dir, { recursive: true });
  }
}

/** Sends back what comes, and says on which port. */
const ECHO = `
const unsent = new Map();
const flush = (s) => {
  const queue = unsent.get(s);
  while (queue.length > 0) {
    const n = s.write(queue[0]);
    if (n < queue[0].length) { queue[0] = queue[0].subarray(Math.max(0, n)); return; }
    queue.shift();
  }
};
const socket = {
  open: (s) => { unsent.set(s, []); s.setNoDelay?.(true); },
  data: (s, bytes) => { unsent.get(s).push(Buffer.from(bytes)); flush(s); },
  drain: flush,
};
Bun.listen({ unix: process.argv[1], socket });
console.log(Bun.listen({ hostname: "127.0.0.1", port: 0, socket }).port);
`;

async function connect(
  to: { unix: string } | { hostname: string; port: number },
): Promise<Exchange> {
  let left = 0;
  let unsent: Uint8Array = new Uint8Array();
  let done = () => {};
  const flush = (socket: Pick<Socket, "write">) => {
    unsent = unsent.subarray(Math.max(0, socket.write(unsent)));
  };
  const socket = await Bun.connect({
    ...to,
    socket: {
      drain: flush,
      data(_socket, bytes) {
        left -= bytes.length;
        if (left === 0) done();
      },
    },
  } as Parameters<typeof Bun.connect>[0]);
  if ("port" in to) (socket as unknown as { setNoDelay(on: boolean): void }).setNoDelay(true);
  return {
    once: (bytes) =>
      new Promise((resolve) => {
        left = bytes;
        done = resolve;
        unsent = new Uint8Array(bytes);
        flush(socket);
      }),
    end: () => socket.end(),
  };
}

async function measure(bytes: number, unix: Exchange, tcp: Exchange): Promise<void> {
  const times = new Map<Exchange, number[]>([
    [unix, []],
    [tcp, []],
  ]);
  for (let turn = 0; turn < ROUNDS; turn++) {
    for (const [exchange, all] of times) {
      for (let n = 0; n < EXCHANGES / (bytes > 1000 ? 10 : 1); n++) {
        const startMs = performance.now();
        await exchange.once(bytes);
        all.push((performance.now() - startMs) * 1000);
      }
    }
  }
  const [ours = [], theirs = []] = times.values();
  const p50 = percentile(ours, 0.5);
  const tcpP50 = percentile(theirs, 0.5);
  print({
    bench: "unix-vs-tcp",
    case: `${bytes} bytes there and back over a Unix socket`,
    n: ours.length,
    p50,
    p99: percentile(ours, 0.99),
    unit: "us",
    against: `loopback TCP: ${tcpP50} us, p99 ${percentile(theirs, 0.99)} us`,
    ratio: round(p50 / tcpP50),
  });
}
